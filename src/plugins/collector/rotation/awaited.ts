import type { RotationContext } from '../../../machines/collector/key-rotation-shapes.ts';

/** Whether a rotation waits for a producer: it was seen with the old key, or is one of those outside. */
export function isAwaited(rotation: Partial<RotationContext> | undefined, producer: string): boolean {
  const { producers = {}, external = [] } = rotation ?? {};
  const known = Object.hasOwn(producers, producer) ? producers[producer] : undefined;
  return known?.old !== undefined || external.includes(producer);
}
