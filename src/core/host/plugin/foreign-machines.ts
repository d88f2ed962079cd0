import { fileURLToPath } from 'node:url';
import type { Logger } from 'pino';
import type { ActorDefinition } from '../../kernel/actors/definition.ts';
import { MachineStepper } from '../../kernel/actors/xstate.ts';
import { HostError } from '../errors/host-error.ts';
import { impurities } from '../testing/index.ts';
import type { ConfiguredPlugin } from './definition.ts';
import type { Owned } from './registrations.ts';

/** The sources of the package, or what is built of them: tests hold the machines in there to be pure. */
const OWN = fileURLToPath(new URL('../../../', import.meta.url));
/** What the engine says when a function changes something frozen. */
const CHANGED = /read only|not extensible|Cannot (add|delete|assign|define|redefine)/;

/**
 * Names in the log every machine of a plugin from outside of the package that replay could not repeat (C3): one that
 * reads a clock, chance or the outside, or that changes its context or event in place. It reads the machine's own functions
 * and tries each of its events once on a frozen context; a test with `given` finds more.
 */
export function reportImpureMachines(
  plugins: readonly ConfiguredPlugin[],
  actors: readonly Owned<ActorDefinition>[],
  logger: Logger,
): void {
  const foreign = new Set(plugins.filter(({ definition }) => isForeign(definition.file)).map(nameOf));
  for (const actor of actors.filter(({ owner }) => foreign.has(owner))) {
    const { owner, type, machine } = actor;
    const read = impurities(machine).map(({ where, what }) => `${what} in ${where}`);
    const found = [...new Set([...read, ...changesInPlace(actor)])];
    if (found.length === 0) continue;
    const { code, what, remedy } = new HostError('HF_PLUGIN_IMPURE', {
      plugin: owner,
      actor: type,
      what: found.join('; '),
    });
    logger.error({ code, plugin: owner, actor: type, what, remedy }, 'plugin.impure_machine');
  }
}

const nameOf = ({ definition }: ConfiguredPlugin): string => definition.name;

function isForeign(file = ''): boolean {
  return !(file.startsWith('file:') ? fileURLToPath(file) : file).startsWith(OWN);
}

/** Each event on the first state, without fields: what throws for want of one proves nothing. */
function changesInPlace({ machine, input }: ActorDefinition): string[] {
  const stepper = new MachineStepper(machine);
  const changes = (act: () => unknown): boolean => {
    try {
      act();
      return false;
    } catch (error) {
      return error instanceof TypeError && CHANGED.test(error.message);
    }
  };
  try {
    const { value, context, done } = stepper.initial(input?.('check'));
    // A copy: the initial context may be an object of the definition, which the actors use too.
    const snapshot = stepper.restore(value, freeze(structuredClone(context)), done);
    const types = machine.events.filter((type) => !type.includes('*'));
    const changing = types.filter((type) => changes(() => stepper.next(snapshot, freeze({ type }))));
    return changing.map((type) => `context or event changed in place on ${type}`);
  } catch {
    return [];
  }
}

function freeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    Object.values(value).forEach(freeze);
  }
  return value;
}
