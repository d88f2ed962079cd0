import type { Condition, Filter, Id } from './requests.ts';

export interface Row {
  readonly id: Id;
  readonly vector: Uint8Array;
  readonly payload: string | null;
}

/** Whether a point passes: all of `must`, none of `must_not`, and one of `should` where there are any. */
export function matches(filter: Filter, point: Row): boolean {
  if (!filter) return true;
  const { must, should, must_not } = filter;
  let payload: unknown;
  const holds = (condition: Condition): boolean => {
    if ('has_id' in condition) return condition.has_id.includes(point.id);
    payload ??= point.payload === null ? {} : JSON.parse(point.payload);
    const values = valuesAt(payload, condition.key);
    const wanted = 'any' in condition.match ? condition.match.any : [condition.match.value];
    return values.some((value) => wanted.some((one) => one === value));
  };
  return must.every(holds) && !must_not.some(holds) && (should.length === 0 || should.some(holds));
}

/** The values under a dotted key; of a list, its elements. */
function valuesAt(payload: unknown, key: string): readonly unknown[] {
  let value = payload;
  for (const part of key.split('.')) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, part)) return [];
    value = (value as Record<string, unknown>)[part];
  }
  return Array.isArray(value) ? value : [value];
}
