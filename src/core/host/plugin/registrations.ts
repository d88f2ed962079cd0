import type { Topic } from '../../../bus/topic.ts';
import type { ActorDefinition, Route } from '../../kernel/actors/definition.ts';
import type { EffectRegistration } from '../../kernel/actors/effect.ts';
import type { HttpSurface, Listener, SurfaceOptions } from '../http/contract.ts';
import type { CommandDefinition } from './command.ts';
import type { HealthReport, OnFailure, PluginAbout, StoppedReport } from './definition.ts';
import type { CheckDefinition } from './diagnosis.ts';

/** Something a plugin declared, with the name of that plugin. */
export type Owned<T> = T & { readonly owner: string };

/** The same of what can belong to a singleton: one host of a cluster does it at a time. */
export type Placed<T> = Owned<T> & { readonly singleton?: string };

/** An HTTP listener that a plugin wants to have; the runtime makes the surface and hands it to `build`. */
export interface SurfaceRegistration {
  readonly options: SurfaceOptions;
  readonly build: (surface: HttpSurface) => void;
}

/** Routes that a plugin adds to the control socket. */
export interface ControlRegistration {
  readonly build: (surface: HttpSurface) => void;
}

/** An empty message on a topic at each time of a cron pattern, in UTC. */
export interface ScheduleRegistration {
  /** Checked at registration: croner accepts it. */
  readonly cron: string;
  readonly topic: Topic<Record<string, never>>;
}

/** What a plugin begins when the runtime is ready. */
export interface ReadyWork {
  readonly work: () => void;
}

/** Work of a plugin at its stop. */
export interface StopWork {
  /** @param reason why the runtime stops, e.g. the name of a signal */
  readonly work: (reason: string) => void | Promise<void>;
}

/** Something that a plugin adds to what another one looks after. */
export interface ContributionRegistration {
  /** Name of the point. */
  readonly point: string;
  readonly make: () => unknown;
  /** What `make` returns, where it needs no running plugin. */
  readonly value?: unknown;
}

/** A fact that a plugin contributes to health pages. */
export interface HealthRegistration {
  readonly name: string;
  readonly report: HealthReport;
  readonly stopped?: StoppedReport;
}

/** A plugin as its definition describes it, tokens by name. */
export interface PluginSummary {
  readonly name: string;
  readonly about?: PluginAbout;
  readonly requires: readonly string[];
  readonly wants: readonly string[];
  readonly provides: readonly string[];
  readonly onFailure: OnFailure;
  /** The work of it that one host of a cluster does at a time. */
  readonly singleton?: string;
}

/**
 * All that core and then the enabled plugins declare, in start order. It is complete, checked and frozen before anything starts:
 * the runtime is built from it, and `holdfast graph` and the command line read it without starting anything.
 * What a plugin declared that failed in `register` is not in it.
 */
export interface Registrations {
  readonly plugins: readonly PluginSummary[];
  /** Actor types; no two of one `type`. Each has a handler here for every effect its machine can ask for. */
  readonly actors: readonly Placed<ActorDefinition>[];
  /** Topic to actor; every `to` is an actor type above. */
  readonly routes: readonly Owned<Route>[];
  /** Effect handlers; no two of one `type`. The handler of a plugin that failed throws that plugin's error. */
  readonly effects: readonly Owned<EffectRegistration>[];
  /** HTTP listeners; no two of one `options.name`. They start after every plugin and drain before any stops. */
  readonly surfaces: readonly Owned<SurfaceRegistration>[];
  /** Listeners of other protocols; their names are none of a surface's. */
  readonly listeners: readonly Owned<Listener>[];
  /** Routes on the control socket, which listens when there are any. */
  readonly controls: readonly Placed<ControlRegistration>[];
  /** Commands of the command line; no two of the same words. */
  readonly commands: readonly Owned<CommandDefinition>[];
  /** Facts for health pages; no two of one `name`. */
  readonly health: readonly Owned<HealthRegistration>[];
  /** What `holdfast doctor` looks at; no two of one `name`. */
  readonly checks: readonly Owned<CheckDefinition>[];
  readonly schedules: readonly Placed<ScheduleRegistration>[];
  readonly contributions: readonly Owned<ContributionRegistration>[];
  /** Files of the data folder that change in place, relative to it. */
  readonly overwrittenFiles: readonly Owned<{ readonly path: string }>[];
  /** Called by the runtime when everything listens. */
  readonly readyWork: readonly Owned<ReadyWork>[];
  /** Carried out by the plugin host, in reverse order. */
  readonly stopWork: readonly Owned<StopWork>[];
}
