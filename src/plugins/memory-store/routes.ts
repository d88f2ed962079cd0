import { dirname } from 'node:path';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { HttpSurface, SurfaceError } from '../../core/host/http/contract.ts';
import { parseJsonBody } from '../../core/host/http/json-body.ts';
import type { Clock } from '../../core/kernel/clock.ts';
import { isCoded } from '../../core/kernel/errors/holdfast-error.ts';
import { version } from '../../core/kernel/version.ts';
import { digestsOf } from './digests.ts';
import type { EngineClient } from './engine/client.ts';
import type { Operation } from './engine/engine.ts';
import { MemoryStoreError } from './errors.ts';
import { filePart, receive } from './incoming.ts';
import { refuseFullDisk } from './jobs/files.ts';
import { COLLECTION_NAME, LARGEST_SNAPSHOT } from './limits.ts';
import type { Snapshots } from './snapshots.ts';

/** The release of the real store whose REST surface this follows; clients compare it with their own. */
const REST_VERSION = '1.19.0';
const JSON_TYPE = 'application/json; charset=utf-8';
/** Probes need no key, as with the real store. */
const PROBE = { config: { credential: 'open' } } as const;

export interface MemoryServices {
  readonly instance: string;
  readonly engine: EngineClient;
  readonly snapshots: Snapshots;
  readonly clock: Clock;
}

const checksum = z
  .string()
  .regex(/^[0-9a-fA-F]{64}$/, 'it is no SHA-256')
  .nullish();
const priority = z.enum(['snapshot', 'replica', 'no_sync']).nullish();
const recovery = z.strictObject({
  location: z.string().max(2_048),
  // The priority makes no difference: there is one node.
  priority,
  checksum,
  api_key: z.string().max(4_096).nullish(),
});

/** An error in the shape of the real store's answers. */
export function memoryErrorBody({ what, code }: SurfaceError): object {
  return { status: { error: what }, time: 0, code };
}

/** The REST surface, as docs/memory.md describes it. */
export function memoryRoutes(surface: HttpSurface, services: MemoryServices): void {
  const { engine, snapshots } = services;
  surface.addHook('onError', (_request, reply, error, done) => {
    if (isCoded(error, 'HF_MEMORY_STORE_BUSY'))
      reply.header('retry-after', String(error.details.seconds ?? 1));
    done();
  });

  surface.get('/', async () => ({
    title: 'holdfast - memory store',
    version: REST_VERSION,
    holdfast: version,
    instance: services.instance,
    digests: true,
  }));
  surface.get('/healthz', PROBE, async () => 'healthz check passed');
  surface.get('/livez', PROBE, async () => 'healthz check passed');
  surface.get('/readyz', PROBE, async () => {
    await engine.call('peer');
    return 'all shards are ready';
  });

  surface.register((scope, _options, registered) => {
    // Bodies go to the engine unparsed: parsing a large one here would block the process.
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
    const route = (method: 'get' | 'post' | 'put' | 'delete', path: string, operation: Operation) =>
      scope[method](path, (request, reply) =>
        answer(reply, () =>
          engine.call(operation, collectionOf(request), request.body as Buffer | undefined),
        ),
      );
    scope.get('/collections', (_request, reply) => answer(reply, () => engine.call('list')));
    route('put', '/collections/:collection', 'create');
    route('get', '/collections/:collection', 'info');
    route('delete', '/collections/:collection', 'drop');
    route('get', '/collections/:collection/exists', 'exists');
    route('put', '/collections/:collection/points', 'upsert');
    route('post', '/collections/:collection/points', 'retrieve');
    route('post', '/collections/:collection/points/delete', 'delete');
    route('post', '/collections/:collection/points/scroll', 'scroll');
    route('post', '/collections/:collection/points/count', 'count');
    route('post', '/collections/:collection/points/search', 'search');
    route('post', '/collections/:collection/points/query', 'query');

    scope.get('/collections/:collection/digests', async (request, reply) => {
      const lines = await digestsOf(engine, collectionOf(request), services.clock);
      return reply.type('application/jsonl').send(lines);
    });

    const path = '/collections/:collection/snapshots';
    scope.get(path, (request, reply) => plain(reply, () => snapshots.list(collectionOf(request))));
    scope.post(path, (request, reply) => plain(reply, () => snapshots.create(collectionOf(request))));
    scope.get(`${path}/:name`, async (request, reply) => {
      const { stream, size } = await snapshots.open(collectionOf(request), nameOf(request));
      reply.headers({
        'content-length': size,
        'content-disposition': `attachment; filename="${nameOf(request)}"`,
      });
      return reply.type('application/octet-stream').send(stream);
    });
    scope.delete(`${path}/:name`, (request, reply) =>
      plain(reply, async () => {
        await snapshots.delete(collectionOf(request), nameOf(request));
        return true;
      }),
    );
    scope.put(`${path}/recover`, (request, reply) =>
      plain(reply, async () => {
        const given = read(recovery, parseJsonBody((request.body ?? Buffer.alloc(0)) as Buffer));
        await snapshots.recover(collectionOf(request), {
          location: given.location,
          checksum: given.checksum ?? undefined,
          apiKey: given.api_key ?? undefined,
        });
        return true;
      }),
    );
    registered();
  });

  surface.register((scope, _options, registered) => {
    // A file of any size is read as it arrives, never as a whole.
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser('multipart/form-data', (_request, _payload, done) => done(null, undefined));
    scope.post(
      '/collections/:collection/snapshots/upload',
      {
        bodyLimit: LARGEST_SNAPSHOT,
        config: { writes: { types: ['multipart/form-data'], because: 'a snapshot is a file of any size' } },
      },
      (request, reply) =>
        plain(reply, async () => {
          const query = request.query as Record<string, unknown>;
          const given = read(z.object({ checksum, priority }), query);
          const part = filePart(request.headers['content-type'] ?? '', request.raw);
          const sum = given.checksum ?? undefined;
          await snapshots.incoming(collectionOf(request), sum, (file) => {
            refuseFullDisk(dirname(file), Number(request.headers['content-length'] ?? 0), 'the snapshot');
            return receive(part, file, sum !== undefined);
          });
          return true;
        }),
    );
    registered();
  });
}

/** Answers with a result in the real store's envelope. @param work gives the result as JSON */
async function answer(reply: FastifyReply, work: () => Promise<string>): Promise<FastifyReply> {
  const began = performance.now();
  const result = await work();
  const seconds = ((performance.now() - began) / 1_000).toFixed(6);
  return reply.type(JSON_TYPE).send(`{"result":${result},"status":"ok","time":${seconds}}`);
}

const plain = (reply: FastifyReply, work: () => Promise<unknown>) =>
  answer(reply, async () => JSON.stringify(await work()));

function read<T>(shape: z.ZodType<T>, value: unknown): T {
  const outcome = shape.safeParse(value);
  if (outcome.success) return outcome.data;
  const [issue] = outcome.error.issues;
  throw new MemoryStoreError('HF_MEMORY_STORE_REQUEST', {
    reason: `${issue?.path.join('.')}: ${issue?.message}`,
  });
}

function collectionOf(request: FastifyRequest): string {
  const { collection } = request.params as { collection: string };
  if (COLLECTION_NAME.test(collection)) return collection;
  const reason = 'a collection is named with letters, digits, and . _ -, at most 64';
  throw new MemoryStoreError('HF_MEMORY_STORE_VALIDATION', { reason });
}

const nameOf = (request: FastifyRequest): string => (request.params as { name: string }).name;
