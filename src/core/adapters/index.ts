/**
 * The contracts with the systems outside: interfaces, tokens and topics that several plugins, or a plugin and the
 * command line, must agree on. A plugin implements them, another one uses them, and neither knows the other. What is
 * imported here is imported from its own file, for most of it is types; the package's door offers these.
 */
export { type AlertRaised, alertRaised } from './alerts.ts';
export { type CredentialRequest, defineRouteKind, type KindInput, type RouteKind } from './mcp-route-kind.ts';
export {
  type NetworkConfig,
  type RouterApi,
  RouterApiToken,
  type RouterChange,
  routerChannels,
  routerConnected,
  type SetAnswer,
} from './router.ts';
export {
  parseSecretReference,
  type SecretsStore,
  SecretsStoreToken,
  secretReference,
} from './secrets-store.ts';
