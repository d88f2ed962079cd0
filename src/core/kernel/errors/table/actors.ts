import type { ErrorTable } from '../holdfast-error.ts';

/** Errors of actors, machines, effects and replay. */
export const actorErrors = {
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
  HF_ACTOR_ELSEWHERE: {
    status: 503,
    what: 'Actor {actor} does not act on this host.',
    remedy: 'Send the event to the host that holds it; `holdfast cluster leases` says which one that is.',
  },
  HF_ACTOR_ADOPTION: {
    status: 500,
    what: 'The state of {actor} that host {host} left cannot be taken over: {reason}.',
    remedy: "Check that host's records (`holdfast log verify`), and run the same release on both hosts.",
  },
  HF_ACTOR_ADOPTION_CUT: {
    status: 500,
    what: 'The takeover from host {host}, as of its record {seq}, was not finished when the process ended.',
    remedy: 'Take over from that host again, as of the same record.',
  },
  HF_EVENT_INVALID: {
    status: 500,
    what: '{path} cannot be recorded: {reason}.',
    remedy:
      'Send plain data (strings, finite numbers, booleans, arrays, objects) under a type other than init, migrate and adopt.',
  },
  HF_MACHINE_CONTEXT: {
    status: 500,
    what: 'A machine put something into {path} that is not plain data (null, a function, a date).',
    remedy:
      'Keep contexts to strings, finite numbers, booleans, arrays and objects; leave a field out instead of null.',
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
  HF_EFFECT_STOPPED: {
    status: 503,
    what: 'The runtime is stopping, so the effect was interrupted.',
    remedy: 'Nothing needs to be done: the effect stays open in the log, and the next start resumes it.',
  },
  HF_EFFECT_ELSEWHERE: {
    status: 503,
    what: 'This host does not act for {type} any more, so the effect was interrupted.',
    remedy: 'Nothing needs to be done: the effect stays open, and the host that takes over resumes it.',
  },
  HF_REPLAY_CHANGE: {
    status: 400,
    what: 'The change cannot be tried: {reason}.',
    remedy:
      'See `holdfast replay what-if --help`; `holdfast log show <seq>` shows the event as it was recorded.',
  },
} as const satisfies ErrorTable;
