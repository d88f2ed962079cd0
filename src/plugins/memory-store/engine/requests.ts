import { z } from 'zod';
import { isObject, nestsDeeper } from '../../../core/kernel/json.ts';
import { MemoryStoreError } from '../errors.ts';
import { DEEPEST, LARGEST_VECTOR, MOST_PER_REQUEST } from '../limits.ts';
import { filter } from './filters.ts';
import { ids, pointId } from './ids.ts';

/** Checked in one loop: a shape for each number would take longer than to store it. */
const vector = z.custom<readonly number[]>(
  (value) => Array.isArray(value) && value.length > 0 && value.every(Number.isFinite),
  'a vector is a list of numbers; named, sparse and multiple ones are beyond this store',
);

const MOST_FIELDS = 100;

/** Which part of a payload is shown: all, nothing, or fields by name. A path would name a field that no payload has. */
const fields = z.custom<boolean | readonly string[]>(
  (value) =>
    typeof value === 'boolean' ||
    (Array.isArray(value) &&
      value.length <= MOST_FIELDS &&
      value.every((name) => typeof name === 'string' && !/[.[\]"]/.test(name))),
  {
    error: ({ input }) =>
      `${isObject(input) ? `${quoted(Object.keys(input))} is not supported: ` : ''}it is true, false or a list of at most ${MOST_FIELDS} fields at the top of a payload, without a path into them`,
  },
);
const shown = {
  with_payload: fields.nullish(),
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

const quoted = (names: readonly string[]): string => names.map((name) => `\`${name}\``).join(', ');

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
  delete: z
    .strictObject({ points: ids.optional(), filter })
    .refine(
      ({ points, filter }) => (points === undefined) !== (filter === undefined),
      'it takes either `points` or a `filter`',
    ),
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
