/**
 * Plugins: what one may declare (`definition.ts`), in which order they start (`order.ts`), the container of their
 * adapters, and the host that registers, starts and stops them. `core` and the plugins themselves import from here.
 */
export type { CommandContext, CommandDefinition, CommandFlag, Terminal } from './command.ts';
export {
  type ConfiguredPlugin,
  definePlugin,
  type HealthReport,
  type OnFailure,
  type OptionsFile,
  type Plugin,
  type PluginContext,
  type PluginDefinition,
  type PluginEntry,
  type PluginStatus,
  type Services,
} from './definition.ts';
export type { CheckContext, CheckDefinition, CheckResult } from './diagnosis.ts';
export { PluginHost, type PluginHostOptions, type RuntimeServices } from './host.ts';
export type {
  ControlRegistration,
  HealthRegistration,
  Owned,
  PluginSummary,
  Registrations,
  ScheduleRegistration,
  StartWork,
  StopWork,
  SurfaceRegistration,
} from './registrations.ts';
export { defineToken, type Token } from './token.ts';
