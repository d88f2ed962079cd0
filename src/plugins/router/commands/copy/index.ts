/**
 * Copies of the config on disk (R35): written with mode 0600 outside every git work tree, encrypted for age unless plaintext is
 * asked for. Imports nothing of the router; the commands load it when they need it.
 */
export { writeCopy } from './write-copy.ts';
