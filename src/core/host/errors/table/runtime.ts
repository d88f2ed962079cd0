import type { ErrorTable } from '../../../kernel/errors/holdfast-error.ts';

/** Errors of the runtime: of plugins, of requests that wait for the log, and of retention. */
export const runtimeErrors = {
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
  HF_PLUGIN_IMPURE: {
    status: 500,
    what: 'The machine of {actor}, of plugin {plugin}, is not pure: {what}. Replay could not repeat its decisions.',
    remedy:
      'Let the plugin read clock and chance and send the result as an event, and return new values from `assign`; see docs/testing-machines.md.',
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
  HF_PLUGIN_SINGLETON: {
    status: 500,
    what: 'Plugin {plugin} does not fit the singleton {singleton}: {reason}.',
    remedy:
      'Let what all hosts need be a plugin of its own without `singleton`, or use `wants` and do without it while that singleton is elsewhere.',
  },
  HF_PLUGIN_EVERY_HOST: {
    status: 500,
    what: 'The route of {topic} in plugin {plugin} leads to every host, and actors of type {actor} cannot hear of what their host missed.',
    remedy:
      'Give the definition of the actor a `hear`, and a `tell` where other hosts cannot use all that it knows: a host that joins, or was away for long, gets no old message.',
  },
  HF_PLUGIN_ELSEWHERE: {
    status: 409,
    what: '{what} does not run on this host: {where}.',
    remedy: 'Run the command on that host; `holdfast cluster status` says which host holds what.',
  },
  HF_PLUGIN_MESSAGE: {
    status: 409,
    what: 'The host {host} sent a message on {topic} that this one does not understand: {reason}.',
    remedy: 'Let both run one version of Holdfast; `holdfast cluster hosts` names the version of each.',
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
  HF_DATA_CHECK: {
    status: 500,
    what: 'The check of the data folder could not be finished: {reason}.',
    remedy:
      'Correct what the reason names, then type `holdfast data check`: it reads everything now. The instance tries again by itself within an hour; each attempt that fails is a log line `data.check_failed`.',
  },
  HF_ACTOR_BATCHED: {
    status: 500,
    what: 'Actor type {actor} asks for batched records, whose effects would run before they are durable.',
    remedy: 'Leave out `durability`: only the decisions on admitted calls may be batched.',
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
  HF_MACHINE_THREW: {
    status: 500,
    what: 'The machine of {actor} threw on event {event}: {reason}.',
    remedy: 'Guards and assigns must be total; the event is recorded and the state is as before.',
  },
  HF_LOG_ARCHIVE: {
    status: 500,
    what: 'The log was not archived: {reason}. Nothing was deleted.',
    remedy: 'Try again; if it fails again, stop the instance and prune then.',
  },
  HF_LOG_PRUNING: {
    status: 409,
    what: 'The log in {dir} is being pruned already.',
    remedy: 'Wait until that is done.',
  },
  HF_LOG_WAITING: {
    status: 503,
    what: 'The log cannot be written ({reason}), so this request is not decided yet; it may be carried out later.',
    remedy:
      'Read the state again before you repeat it; Holdfast continues by itself when the log can be written.',
  },
} as const satisfies ErrorTable;
