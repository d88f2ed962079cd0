/**
 * Secrets at rest: the vault that names and seals them, and the files that hold keys and tokens.
 *
 * Everything is synchronous, for a fingerprint is wanted in the middle of a decision's path. Anything in `core`
 * and any plugin may import this folder; it imports only ids, JSON and errors.
 */
export { canonicalJson } from './canonical-json.ts';
export {
  createSecretFile,
  readSecretFile,
  readTokenFile,
  removeSecretFile,
  replaceSecretFile,
} from './secret-file.ts';
export { openVault, Vault, type VaultKeys } from './vault.ts';
