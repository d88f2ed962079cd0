/**
 * The memory store as an MCP server behind the gateway, the route `memory`: an agent keeps notes and finds them again, by
 * words, or by vectors where it has some. A note is a point whose payload is `{ document, metadata }`, as other memory
 * servers keep it. A route of that name with an upstream replaces it.
 */
import { randomUUID } from 'node:crypto';
import { McpServer } from '@modelcontextprotocol/server';
import { z } from 'zod';
import { addTool } from '../../core/contracts/mcp-tool.ts';
import type { MemoryStore } from '../../core/contracts/memory-store.ts';
import { version } from '../../core/kernel/version.ts';
import { fitting, type Note, noteFields, noteId, noteOf } from './note.ts';
import type { TextIndex } from './text-index.ts';

const MOST_FOUND = 50;
const MOST_LISTED = 100;

export interface MemoryServerOptions {
  readonly store: MemoryStore;
  readonly collection: string;
  /** Numbers in a vector of a collection that is made here. */
  readonly vectorSize: number;
  readonly index: TextIndex;
}

const vector = z.array(z.number()).min(1).max(16_384);

/** Makes the server of one session. */
export function memoryServer({ store, collection, vectorSize, index }: MemoryServerOptions): McpServer {
  const server = new McpServer(
    { name: 'memory', version },
    {
      instructions:
        'Keeps notes over sessions. `find` before you answer from memory, `store` what should be known later, `forget` what is wrong or no longer wanted.',
    },
  );
  addTool(server, {
    name: 'store',
    description: 'Keeps a note. With the id of an earlier one, replaces it.',
    input: z.strictObject({
      document: noteFields.document,
      metadata: noteFields.metadata.optional(),
      id: noteId.optional(),
      vector: vector.optional().describe('Its embedding, where the caller makes embeddings'),
    }),
    annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: false },
    async answer({ document, metadata = {}, id: given, vector: embedding }, signal) {
      const size = await sizeOf(embedding?.length, signal);
      const point = {
        id: given ?? randomUUID(),
        vector: embedding ?? new Array<number>(size).fill(0), // found by words alone
        payload: { document, metadata },
      };
      await store.upsert(collection, [point], signal);
      index.put(point.id, point.payload);
      return { id: point.id, replaced: given !== undefined };
    },
  });
  addTool(server, {
    name: 'find',
    description:
      'Finds notes: by words, all of which a note must have (`word*` for a beginning), or by the embedding of a question.',
    input: z.strictObject({
      query: z.string().max(2_000).optional(),
      vector: vector.optional(),
      limit: z.int().min(1).max(MOST_FOUND).default(10),
    }),
    async answer({ query, vector: embedding, limit }, signal) {
      if (embedding) {
        const found = await store.search(collection, embedding, limit, signal);
        return answerOf(
          'vector',
          found.map(({ score, ...point }) => ({ ...noteOf(point), score })),
        );
      }
      if (!(await store.collection(collection, signal))) return answerOf('words', []);
      const matches = await index.search(query ?? '', limit, signal);
      const points = await store.points(
        collection,
        matches.map(({ id }) => id),
        signal,
      );
      const byId = new Map(points.map((point) => [point.id, point]));
      const notes = matches.flatMap(({ id }) => byId.get(id) ?? []).map(noteOf);
      return answerOf('words', notes);
    },
  });
  addTool(server, {
    name: 'list',
    description: 'Lists the notes page by page, in the order of their ids.',
    input: z.strictObject({
      limit: z.int().min(1).max(MOST_LISTED).default(20),
      cursor: z
        .string()
        .regex(/^(?:\d{1,16}|"[0-9a-fA-F-]{36}")$/)
        .optional()
        .describe('`nextCursor` of the answer before'),
    }),
    async answer({ limit, cursor }, signal) {
      if (!(await store.collection(collection, signal))) return { notes: [], total: 0 };
      const from = cursor === undefined ? undefined : noteId.parse(JSON.parse(cursor));
      const [page, total] = await Promise.all([
        store.scroll(collection, { from, limit, vectors: false }, signal),
        store.count(collection, signal),
      ]);
      const notes = fitting(page.points.map(noteOf));
      const next = page.points[notes.length]?.id ?? page.next;
      return { notes, total, ...(next !== undefined && { nextCursor: JSON.stringify(next) }) };
    },
  });
  addTool(server, {
    name: 'forget',
    description: 'Removes notes by their ids, for ever. Says how many of them there were.',
    input: z.strictObject({ ids: z.array(noteId).min(1).max(100) }),
    annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
    async answer({ ids }, signal) {
      const known = await store.points(collection, ids, signal);
      await store.remove(collection, ids, signal);
      for (const one of ids) index.remove(one);
      return { forgotten: known.map((point) => point.id) };
    },
  });

  /** Numbers in a vector of the collection, which is made if it is not there. @param wanted by the caller's own vector */
  async function sizeOf(wanted: number | undefined, signal: AbortSignal): Promise<number> {
    const known = await store.collection(collection, signal);
    if (!known) await store.createCollection(collection, wanted ?? vectorSize, signal);
    const { size } = z
      .object({ size: z.int() })
      .catch({ size: wanted ?? vectorSize })
      .parse(known?.vectors);
    return size;
  }
  return server;
}

/** The notes that an answer may hold, the best first, and how many more were found. */
function answerOf(by: 'words' | 'vector', found: readonly Note[]): object {
  const notes = fitting(found);
  const leftOff = found.length - notes.length;
  return { by, notes, ...(leftOff > 0 && { leftOff }) };
}
