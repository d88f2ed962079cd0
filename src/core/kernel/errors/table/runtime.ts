import { type ErrorEntry, entry } from '../entry.ts';

/** Of the runtime: plugins, actors, machines. */
export const runtimeErrors = {
  HF_INTERNAL: entry(
    500,
    'Something failed that Holdfast did not foresee.',
    'Look for the same correlation id in the log lines; if it repeats, report it with `holdfast log show`.',
  ),

  // Plugins
  HF_PLUGIN_MISSING: entry(
    500,
    'Plugin {plugin} needs {token}, which no enabled plugin provides.',
    'Add a plugin that provides {token} to plugins.config.ts, or remove {plugin}.',
  ),
  HF_PLUGIN_CYCLE: entry(
    500,
    'Plugins need each other in a circle: {cycle}.',
    'Split what one of them provides, so that the circle opens.',
  ),
  HF_PLUGIN_CONFLICT: entry(
    500,
    '{what} is declared by both {first} and {second}.',
    'Keep one of the two plugins in plugins.config.ts, or rename what they share.',
  ),
  HF_PLUGIN_DEADLINE: entry(
    500,
    'Plugin {plugin} did not finish its {phase} within {ms} ms.',
    'Look at what {plugin} waits for; its own log lines carry plugin={plugin}.',
  ),
  HF_PLUGIN_FAILED: entry(
    500,
    'Plugin {plugin} failed in its {phase}: {reason}.',
    "Fix the cause; a plugin with onFailure 'continue' lets the rest run without it.",
  ),
  HF_PLUGIN_CONTRACT: entry(
    500,
    'Plugin {plugin} breaks its own definition: {reason}.',
    'Make `requires` and `provides` of its definition say what it uses and gives.',
  ),
  HF_PLUGIN_EARLY: entry(
    500,
    'Plugin {plugin} used ctx.services before it was started.',
    'Use services inside onStart, handlers and factories; register() only declares.',
  ),
  HF_PLUGIN_INTERRUPTED: entry(
    503,
    'The runtime was stopped before all plugins had started.',
    'Start it again when it is wanted; what had started has been stopped.',
  ),
  HF_PLUGIN_FROZEN: entry(
    500,
    'Plugin {plugin} tried to declare {what} after boot.',
    'Declare in register(); start() and later may only use what was declared.',
  ),
  HF_EFFECT_UNHANDLED: entry(
    500,
    'Actor type {actor} asks for effect {effect}, which no plugin handles.',
    'Enable the plugin that registers {effect}, or remove the actor.',
  ),
  HF_ROUTE_TARGET: entry(
    500,
    'A route of plugin {plugin} sends {topic} to actor type {actor}, which nobody registers.',
    'Register the actor, or correct the route.',
  ),

  // Actors and machines
  HF_ACTOR_UNKNOWN: entry(
    500,
    'Nothing is registered for actor {actor}.',
    'Enable the plugin that registers this actor type, or look for a typing error in the address.',
  ),
  HF_ACTOR_OVERLOADED: entry(
    503,
    'More than {limit} events wait for the log.',
    'Wait and try again; `holdfast status` says what the log waits for.',
  ),
  HF_EVENT_INVALID: entry(
    500,
    '{path} cannot be recorded: {reason}.',
    'Send plain data (strings, finite numbers, booleans, arrays, objects) under a type other than init.',
  ),
  HF_MACHINE_CONTEXT: entry(
    500,
    'A machine put something into {path} that is not plain data (null, a function, a date).',
    'Keep contexts to strings, finite numbers, booleans, arrays and objects; leave a field out instead of null.',
  ),
  HF_MACHINE_THREW: entry(
    500,
    'The machine of {actor} threw on event {event}: {reason}.',
    'Guards and assigns must be total; the event is recorded and the state is as before.',
  ),
  HF_MACHINE_IMPURE: entry(
    500,
    'Machine {machine} uses {what}, which replay could not repeat.',
    'Ask for an effect instead, and take its outcome as an event.',
  ),
  HF_MACHINE_VERSION: entry(
    500,
    'Plugin {plugin} has version {current} of actor type {type}, and {actor} was left by version {recorded}: {reason}.',
    'Give the actor definition a migrate that takes version {recorded}, or run the release that wrote the log.',
  ),
  HF_EFFECT_TIMEOUT: entry(
    504,
    'Effect {effect} had no outcome within {ms} ms.',
    'Treat its result as unknown: read the system it touched before trying again.',
  ),
} as const satisfies Record<string, ErrorEntry>;
