import { z } from 'zod';
import { isObject, nestsDeeper } from '../../../core/kernel/json.ts';
import { MemoryStoreError } from '../errors.ts';
import { LARGEST_VECTOR, MOST_PER_REQUEST } from '../limits.ts';

const UUID = /^([0-9a-f]{8})-?([0-9a-f]{4})-?([0-9a-f]{4})-?([0-9a-f]{4})-?([0-9a-f]{12})$/;
const DEEPEST = 64;

/** @returns the one spelling of a UUID */
const plainUuid = (text: string): string => text.toLowerCase().replace(UUID, '$1-$2-$3-$4-$5');

const pointId = z.union([
  // A value that is no point id is malformed (400), not out of bounds (422).
  z.int().refine((id) => id >= 0, 'a point id is a number or a UUID'),
  z
    .string()
    .refine((text) => UUID.test(text.toLowerCase()), 'a point id is a number or a UUID')
    .transform(plainUuid),
]);
export type Id = z.output<typeof pointId>;

const ids = z.array(pointId).max(MOST_PER_REQUEST);

/** Checked in one loop: a shape for each number would take longer than to store it. */
const vector = z.custom<readonly number[]>(
  (value) => Array.isArray(value) && value.length > 0 && value.every(Number.isFinite),
  'a vector is a list of numbers; named, sparse and multiple ones are beyond this store',
);

const scalar = z.union([z.string(), z.number(), z.boolean()]);
const condition = z.union([
  z.strictObject({ has_id: ids }),
  z.strictObject({ key: z.string().max(256), match: z.strictObject({ value: scalar }) }),
  z.strictObject({ key: z.string().max(256), match: z.strictObject({ any: z.array(scalar).max(1_000) }) }),
]);
const conditions = z
  .union([condition.transform((one) => [one]), z.array(condition).max(100)])
  .nullish()
  .transform((list) => list ?? []);

/** The part of the real store's filters that is supported: `must`, `should`, `must_not` over ids and equal payload values. */
const filter = z.strictObject({ must: conditions, should: conditions, must_not: conditions }).nullish();
export type Condition = z.output<typeof condition>;
export type Filter = z.output<typeof filter>;

const shown = {
  with_payload: z.union([z.boolean(), z.array(z.string()).max(100)]).nullish(),
  with_vector: z.boolean().nullish(),
};
const limit = z.int().min(1).max(MOST_PER_REQUEST);
const ranking = {
  ...shown,
  filter,
  limit: limit.default(10),
  offset: z.int().min(0).max(MOST_PER_REQUEST).nullish(),
  score_threshold: z.number().nullish(),
  params: z.unknown().optional(),
};

/** Taken as it was parsed: a copy would lose keys such as `__proto__`. */
const payload = z.custom<Readonly<Record<string, unknown>>>(isObject, 'a payload is an object').nullish();
const points = z.strictObject({
  points: z.array(z.strictObject({ id: pointId, vector, payload })).max(MOST_PER_REQUEST),
});
const columns = z
  .strictObject({
    batch: z.strictObject({
      ids,
      vectors: z.array(vector).max(MOST_PER_REQUEST),
      payloads: z.array(payload).max(MOST_PER_REQUEST).nullish(),
    }),
  })
  .refine(({ batch }) => batch.ids.length === batch.vectors.length, 'there are as many vectors as ids')
  .transform(({ batch }) => ({
    points: batch.ids.map((id, index) => ({
      id,
      vector: batch.vectors[index] ?? [],
      payload: batch.payloads?.[index],
    })),
  }));

/** Settings of an index, which changes no result of an exact search: taken and not used. */
const tuning = {
  hnsw_config: z.unknown().optional(),
  optimizers_config: z.unknown().optional(),
  wal_config: z.unknown().optional(),
  on_disk_payload: z.unknown().optional(),
  shard_number: z.literal(1).nullish(),
  replication_factor: z.literal(1).nullish(),
  write_consistency_factor: z.literal(1).nullish(),
};

/** The bodies that the store understands; an unknown field is refused by its name. */
export const requests = {
  create: z.strictObject({
    vectors: z.strictObject({
      size: z.int().min(1).max(LARGEST_VECTOR),
      distance: z.literal('Cosine', 'only Cosine is within this store'),
      on_disk: z.boolean().nullish(),
    }),
    ...tuning,
  }),
  upsert: z.union([points, columns]),
  delete: z.union([
    z.strictObject({ points: ids }),
    z.strictObject({
      filter: filter.refine((given) => given !== null && given !== undefined, 'it is missing'),
    }),
  ]),
  retrieve: z.strictObject({ ids, ...shown }),
  scroll: z.strictObject({ limit: limit.nullish(), offset: pointId.nullish(), filter, ...shown }),
  count: z.strictObject({ exact: z.boolean().nullish(), filter }),
  search: z.strictObject({ vector, ...ranking }),
  query: z
    .strictObject({
      query: z.union([
        vector,
        pointId,
        z.strictObject({ nearest: z.union([vector, pointId]) }).transform(({ nearest }) => nearest),
      ]),
      ...ranking,
    })
    .transform(({ query, ...rest }) => ({ ...rest, target: query })),
} as const;

export type Requests = { readonly [K in keyof typeof requests]: z.output<(typeof requests)[K]> };

/**
 * Reads a body: what is no JSON, or of the wrong kind, is a 400; what is out of bounds is a 422, as in the real store.
 *
 * @throws HF_MEMORY_STORE_REQUEST, HF_MEMORY_STORE_VALIDATION
 */
export function parseRequest<K extends keyof typeof requests>(kind: K, body: Uint8Array): Requests[K] {
  const text = Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('utf8');
  const outcome = requests[kind].safeParse(parseJson(text));
  if (outcome.success) return outcome.data as Requests[K];
  const issue = deepest(outcome.error.issues);
  const reason = `${issue.path.length > 0 ? `${issue.path.join('.')}: ` : ''}${issue.message}`;
  const issueCode = outcome.error.issues[0]?.code;
  const code =
    issueCode === 'too_small' || issueCode === 'too_big'
      ? 'HF_MEMORY_STORE_VALIDATION'
      : 'HF_MEMORY_STORE_REQUEST';
  throw new MemoryStoreError(code, { reason });
}

function parseJson(text: string): unknown {
  if (nestsDeeper(text, DEEPEST))
    throw new MemoryStoreError('HF_MEMORY_STORE_REQUEST', { reason: 'it is nested too deeply' });
  try {
    return JSON.parse(text);
  } catch {
    throw new MemoryStoreError('HF_MEMORY_STORE_REQUEST', {
      reason: 'Format error in JSON body: it is not JSON',
    });
  }
}

/** The issue of a union says only that no alternative fits; the deepest issue of its alternatives says why. */
function deepest(issues: readonly z.core.$ZodIssue[], base: readonly PropertyKey[] = []): z.core.$ZodIssue {
  const [first] = issues as [z.core.$ZodIssue];
  const path = [...base, ...first.path];
  if (first.code !== 'invalid_union' || first.errors.length === 0)
    return { ...first, path } as z.core.$ZodIssue;
  const inner = first.errors.filter((list) => list.length > 0).map((list) => deepest(list, path));
  return inner.toSorted((a, b) => b.path.length - a.path.length)[0] ?? first;
}
