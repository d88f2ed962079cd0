/**
 * What a plugin's author, and a program that embeds Holdfast, import from the package. Nothing inside `src` imports it.
 */

// Kernel: topics, actors, the event log and its replay. It knows no HTTP and no plugin.

export { Bus, type Envelope } from './bus/bus.ts';
export { defineTopic, type Topic } from './bus/topic.ts';
export {
  type ActorDefinition,
  DEFAULT_WORDS,
  defineActor,
  type EventOf,
  HIDDEN,
  type MachineState,
  type ProblemTest,
  problemEvents,
  type RecordOf,
  type Route,
  type Words,
} from './core/kernel/actors/definition.ts';
export type {
  EffectContext,
  EffectHandler,
  EffectOptions,
  EffectOutcome,
} from './core/kernel/actors/effect.ts';
export type { ActorSnapshot, ActorState } from './core/kernel/actors/transition.ts';
export {
  type CodedError,
  defineErrors,
  type ErrorClass,
  type ErrorCode,
  HoldfastError,
  isCoded,
} from './core/kernel/errors/holdfast-error.ts';
export type { EventLog, LogReader, ReadRange } from './core/kernel/log/event-log.ts';
export type { LogEvent, LogRecord } from './core/kernel/log/record.ts';
export { SqliteReader } from './core/kernel/log/sqlite-reader.ts';
export { type Divergence, Replay, type ReplayReport } from './core/kernel/replay/verify.ts';
export { verifyLog } from './core/kernel/replay/verify-log.ts';
export { version } from './core/kernel/version.ts';

// Host: plugins, their configuration and HTTP surfaces, and the runtime that carries them.

export { ConfigFile } from './core/host/config/config-file.ts';
export { type Config, defineConfig } from './core/host/config/define-config.ts';
export { type LoadedConfig, loadConfig } from './core/host/config/load.ts';
export { resolveConfig } from './core/host/config/resolve.ts';
export type { HttpSurface, SurfaceOptions } from './core/host/http/contract.ts';
export { type ListenOptions, listeningOf, listenOptions } from './core/host/http/listen-options.ts';
export type { Reply } from './core/host/http/pending-replies.ts';
export {
  definePlugin,
  type Plugin,
  type PluginContext,
  type PluginDefinition,
  type PluginEntry,
  type Services,
} from './core/host/plugin/definition.ts';
export type { CheckDefinition, CheckResult } from './core/host/plugin/diagnosis.ts';
export { createRuntime, type Runtime, type RuntimeOptions } from './core/host/runtime/runtime.ts';

// Contracts: what one plugin provides and others use.

export { type AlertRaised, alertRaised } from './core/contracts/alerts.ts';
export {
  type ActionField,
  type ConsoleAction,
  type ConsolePage,
  consoleActions,
  consolePages,
  type PageMoment,
  type PageSection,
  type PageStatus,
} from './core/contracts/console.ts';
export { type McpCommand, type McpRoute, mcpRoutes } from './core/contracts/mcp-routes.ts';
export { addTool, type ToolDefinition } from './core/contracts/mcp-tool.ts';
export {
  type NetworkConfig,
  type RouterApi,
  RouterApiToken,
  type RouterChange,
  routerChannels,
  routerConnected,
  type SetAnswer,
} from './core/contracts/router.ts';
export { type SecretsStore, SecretsStoreToken } from './core/contracts/secrets-store.ts';
export {
  type Contributed,
  type ContributionPoint,
  defineContributionPoint,
  defineToken,
  type Token,
} from './core/contracts/token.ts';
export {
  type Heartbeat,
  type PushAnswer,
  type PushEvent,
  type UptimeMonitor,
  UptimeMonitorToken,
} from './core/contracts/uptime.ts';
