import { pino } from 'pino';
import { createMachine, setup } from 'xstate';
import { z } from 'zod';
import { Bus } from '../../../../src/bus/bus.ts';
import {
  type ConfiguredPlugin,
  definePlugin,
  type PluginContext,
  type PluginDefinition,
} from '../../../../src/core/host/plugin/definition.ts';
import type { RuntimeServices } from '../../../../src/core/host/plugin/host.ts';
import { newCorrelation } from '../../../../src/core/kernel/clock.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

type Definition = Partial<
  Pick<
    PluginDefinition,
    'requires' | 'wants' | 'provides' | 'collects' | 'onFailure' | 'singleton' | 'hostBound' | 'start'
  >
>;

/** A plugin that declares what `register` says. */
export function plugin(
  name: string,
  register: (context: PluginContext) => void = () => {},
  definition: Definition = {},
): ConfiguredPlugin {
  const defined = definePlugin({ name, options: z.strictObject({}), ...definition, register });
  return { definition: defined.definition as unknown as PluginDefinition, options: {} };
}

/** The parts of a runtime that the plugin host itself touches: bus, clock and logger are the real ones. */
export function services(clock: VirtualClock = new VirtualClock()) {
  const lines: Record<string, unknown>[] = [];
  const logger = pino({ base: null }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  const bus = new Bus(newCorrelation);
  return { lines, bus, clock, given: { bus, clock, logger } as unknown as RuntimeServices };
}

/** A machine that asks for the effects named. */
export function machineAsking(...effects: string[]) {
  return setup({
    types: { events: {} as { type: 'go' } },
    actions: Object.fromEntries(effects.map((type) => [type, () => {}])),
  }).createMachine({ id: 'asking', on: { go: { actions: effects } } } as never);
}

export const idleMachine = createMachine({ id: 'idle' });
