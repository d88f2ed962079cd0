import { connect, type Socket } from 'node:net';
import type { ExecutionContext } from 'ava';
import type { HttpSurface, Surface, SurfaceOptions } from '../../../../src/core/host/http/contract.ts';
import { createSurface } from '../../../../src/core/host/http/surface.ts';
import { createLogger, type LogLevel } from '../../../../src/core/host/logging/logger.ts';
import { Metrics } from '../../../../src/core/host/metrics/metrics.ts';

export interface Running {
  readonly surface: Surface;
  readonly url: string;
  readonly port: number;
  readonly metrics: Metrics;
  /** Every log line so far. */
  readonly lines: Record<string, unknown>[];
}

/** A surface on a free port, with a few routes, closed when the test ends. */
export async function serve(
  t: ExecutionContext,
  options: Partial<SurfaceOptions> = {},
  build: (http: HttpSurface) => void = commonRoutes,
  level: LogLevel = 'debug',
  maxConnections?: number,
): Promise<Running> {
  const lines: Record<string, unknown>[] = [];
  const logger = createLogger({ level, destination: { write: (line) => void lines.push(JSON.parse(line)) } });
  const metrics = new Metrics();
  const surface = createSurface(
    { name: 'test', port: 0, portVariable: 'HOLDFAST_TEST_PORT', ...options },
    { logger, metrics },
  );
  build(surface.http);
  t.teardown(() => surface.close(0));
  const { url } = await surface.listen(maxConnections === undefined ? {} : { maxConnections });
  return { surface, url, port: Number(new URL(url).port), metrics, lines };
}

export function commonRoutes(http: HttpSurface): void {
  http.get('/thing/:id', (request) => ({ id: (request.params as { id: string }).id }));
  http.post('/echo', (request) => request.body);
  http.post('/act', () => ({ done: true }));
  http.get('/boom', () => {
    throw new Error('password=hunter2 in /etc/shadow');
  });
}

/** Sends bytes as they are and returns everything that comes back until the other side closes. */
export function raw(port: number, bytes: string | Buffer, host = '127.0.0.1'): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket: Socket = connect(port, host);
    let received = '';
    socket.setEncoding('utf8');
    socket.on('connect', () => socket.write(bytes));
    socket.on('data', (chunk) => {
      received += chunk;
    });
    socket.on('close', () => resolve(received));
    socket.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'ECONNRESET' && error.code !== 'EPIPE') reject(error);
    });
  });
}

/** The status and the parsed body of a raw answer. */
export function parsed(answer: string): { status: number; body: Record<string, unknown> } {
  const [head = '', body = ''] = answer.split('\r\n\r\n', 2);
  return { status: Number(head.split(' ')[1]), body: body === '' ? {} : JSON.parse(body) };
}
