/**
 * What a program that embeds Holdfast, and a plugin's author, may import: the package's public door. Inside `src`,
 * folders import each other's doors directly.
 */
export { Bus, type Envelope } from '../bus/bus.ts';
export { defineRoute, defineTopic, type Route, type Topic } from '../bus/index.ts';
export {
  type ActorDefinition,
  type ActorState,
  defineActor,
  type EffectContext,
  type EffectHandler,
  type EffectOptions,
  type EffectOutcome,
  type MachineState,
} from './actors/index.ts';
export {
  type AlertRaised,
  alertRaised,
  type CredentialRequest,
  defineRouteKind,
  type KindInput,
  type NetworkConfig,
  type RouteKind,
  type RouterApi,
  RouterApiToken,
  type RouterChange,
  routerChannels,
  routerConnected,
  type SecretsStore,
  SecretsStoreToken,
  type SetAnswer,
} from './adapters/index.ts';
export {
  type Config,
  ConfigFile,
  defineConfig,
  type LoadedConfig,
  loadConfig,
  resolveConfig,
} from './config/index.ts';
export { type CodedError, type ErrorCode, HoldfastError, isCoded } from './errors/index.ts';
export type { HttpSurface, Reply, SurfaceOptions } from './http/index.ts';
export type { EventLog, LogEvent, LogReader, LogRecord, ReadRange } from './log/index.ts';
export { SqliteReader } from './log/index.ts';
export {
  definePlugin,
  defineToken,
  type Plugin,
  type PluginContext,
  type PluginDefinition,
  type PluginEntry,
  type Services,
  type Token,
} from './plugin/index.ts';
export { type Divergence, Replay, type ReplayReport, verifyLog } from './replay/index.ts';
export { createRuntime, type Runtime, type RuntimeOptions } from './runtime/index.ts';
export { version } from './version.ts';
