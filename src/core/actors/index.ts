/**
 * The actor system: pure machines as addressed actors, one record a transition, effects when the record is
 * durable. Imported by plugins for its contracts and by the runtime for the rest; knows no plugin.
 */
export {
  type ActorDefinition,
  type Durability,
  defineActor,
  effectTypes,
  type MachineState,
} from './definition.ts';
export {
  EFFECT_DONE,
  EFFECT_FAILED,
  EFFECT_LOST,
  type EffectContext,
  type EffectHandler,
  type EffectOptions,
  type EffectOutcome,
  type EffectRegistration,
} from './effect.ts';
export { EffectDispatcher, type EffectEnd } from './effects.ts';
export { MachineStepper, type Step } from './machine-step.ts';
export { type Recovered, recover, savedStates } from './recover.ts';
export { type ActorState, applyRecord, type OpenEffect, type OpenTimer } from './state.ts';
export { ActorSystem, type EffectRunner, type SendMeta, type Sent } from './system.ts';
