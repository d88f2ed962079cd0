import type { ErrorTable } from '../holdfast-error.ts';

/** Errors of the runtime: plugins, actors, machines and effects. */
export const runtimeErrors = {
  HF_INTERNAL: {
    status: 500,
    what: 'Something failed that Holdfast did not foresee.',
    remedy:
      'Look for the same correlation id in the log lines; if it repeats, report it with `holdfast log show`.',
  },
  HF_PLUGIN_MISSING: {
    status: 500,
    what: 'Plugin {plugin} needs {token}, which no enabled plugin provides.',
    remedy: 'Add a plugin that provides {token} to plugins.config.ts, or remove {plugin}.',
  },
  HF_PLUGIN_CYCLE: {
    status: 500,
    what: 'Plugins need each other in a circle: {cycle}.',
    remedy: 'Split what one of them provides, so that there is no circle any more.',
  },
  HF_PLUGIN_CONFLICT: {
    status: 500,
    what: '{what} is declared by both {first} and {second}.',
    remedy: 'Keep one of the two plugins in plugins.config.ts, or rename what they share.',
  },
  HF_PLUGIN_DEADLINE: {
    status: 500,
    what: 'Plugin {plugin} did not finish its {phase} within {ms} ms.',
    remedy: 'Look at what {plugin} waits for; its own log lines carry plugin={plugin}.',
  },
  HF_PLUGIN_FAILED: {
    status: 500,
    what: 'Plugin {plugin} failed in its {phase}: {reason}.',
    remedy: "Fix the cause; a plugin with onFailure 'continue' lets the rest run without it.",
  },
  HF_PLUGIN_CONTRACT: {
    status: 500,
    what: 'Plugin {plugin} breaks its own definition: {reason}.',
    remedy:
      'List what it uses in `requires` or `wants` of its definition, and what it provides in `provides`.',
  },
  HF_PLUGIN_EARLY: {
    status: 500,
    what: 'Plugin {plugin} used what its start makes before it was started.',
    remedy:
      'Use it inside handlers and factories only: `register` declares, and nothing is called before `start` has returned.',
  },
  HF_PLUGIN_INTERRUPTED: {
    status: 503,
    what: 'The runtime was stopped before all plugins had started.',
    remedy: 'Start it again if you want it; the plugins that had started were stopped.',
  },
  HF_PLUGIN_FROZEN: {
    status: 500,
    what: 'Plugin {plugin} tried to declare {what} after boot.',
    remedy: 'Declare in register(); start() and later may only use what was declared.',
  },
  HF_EFFECT_UNHANDLED: {
    status: 500,
    what: 'Actor type {actor} asks for effect {effect}, which no plugin handles.',
    remedy: 'Enable the plugin that registers {effect}, or remove the actor.',
  },
  HF_ROUTE_TARGET: {
    status: 500,
    what: 'A route of plugin {plugin} sends {topic} to actor type {actor}, which no plugin registers.',
    remedy: 'Register the actor, or correct the route.',
  },
  HF_ACTOR_UNKNOWN: {
    status: 500,
    what: 'No plugin registers the type of actor {actor}.',
    remedy: 'Enable the plugin that registers this actor type, or correct the address.',
  },
  HF_ACTOR_OVERLOADED: {
    status: 503,
    what: 'More than {limit} events wait for the log.',
    remedy: 'Wait and try again; `holdfast status` says what the log waits for.',
  },
  HF_EVENT_INVALID: {
    status: 500,
    what: '{path} cannot be recorded: {reason}.',
    remedy:
      'Send plain data (strings, finite numbers, booleans, arrays, objects) under a type other than init.',
  },
  HF_MACHINE_CONTEXT: {
    status: 500,
    what: 'A machine put something into {path} that is not plain data (null, a function, a date).',
    remedy:
      'Keep contexts to strings, finite numbers, booleans, arrays and objects; leave a field out instead of null.',
  },
  HF_MACHINE_THREW: {
    status: 500,
    what: 'The machine of {actor} threw on event {event}: {reason}.',
    remedy: 'Guards and assigns must be total; the event is recorded and the state is as before.',
  },
  HF_MACHINE_IMPURE: {
    status: 500,
    what: 'Machine {machine} uses {what}, which replay could not repeat.',
    remedy: 'Ask for an effect instead, and take its outcome as an event.',
  },
  HF_MACHINE_VERSION: {
    status: 500,
    what: 'Plugin {plugin} has version {current} of actor type {type}, and {actor} was left by version {recorded}: {reason}.',
    remedy:
      'Give the actor definition a migrate that takes version {recorded}, or run the release that wrote the log.',
  },
  HF_EFFECT_TIMEOUT: {
    status: 504,
    what: 'Effect {effect} had no outcome within {ms} ms.',
    remedy: 'Treat its result as unknown: read the system it touched before trying again.',
  },
} as const satisfies ErrorTable;
