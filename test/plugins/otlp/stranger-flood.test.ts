import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { status } from '@grpc/grpc-js';
import test from 'ava';
import { resolveConfig } from '../../../src/core/host/config/resolve.ts';
import { createLogger } from '../../../src/core/host/logging/logger.ts';
import { createRuntime } from '../../../src/core/host/runtime/runtime.ts';
import { collector } from '../../../src/plugins/collector/index.ts';
import { otlp } from '../../../src/plugins/otlp/index.ts';
import { tempDir } from '../../support/temp.ts';
import { callGrpc } from './grpc-client.ts';

test('[C14] a flood of producers without a key ends in 429, over HTTP and gRPC; one with the key goes on', async (t) => {
  const dataDir = tempDir(t);
  const lines: string[] = [];
  const runtime = createRuntime({
    plugins: resolveConfig(
      {
        plugins: [
          collector(),
          otlp({ port: 0, grpcPort: 0, strangerBudget: { burst: 5, perSecond: 0.001 } }),
        ],
      },
      { env: {} },
    ).plugins,
    dataDir,
    logger: createLogger({ destination: { write: (line) => void lines.push(line) } }),
  });
  t.teardown(() => runtime.stop('test ended'));
  await runtime.start();
  const { otlpHttp, otlpGrpc } = runtime.surfaces;
  const post = (headers: Record<string, string>) =>
    fetch(`${otlpHttp?.url}/v1/traces`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: '{}',
    });
  t.is((await post({ authorization: 'a-guess' })).status, 401);
  t.is((await callGrpc(otlpGrpc?.url ?? '', undefined)).code, status.UNAUTHENTICATED);
  const answers = await Promise.all(Array.from({ length: 10 }, () => post({})));
  t.is(answers.filter((answer) => answer.status === 401).length, 3);
  const refused = answers.find((answer) => answer.status === 429);
  t.regex(refused?.headers.get('retry-after') ?? '', /^\d+$/);
  t.is((await callGrpc(otlpGrpc?.url ?? '', undefined)).code, status.UNAVAILABLE, 'the same peer');
  t.is(lines.filter((line) => line.includes('http.over_budget')).length, 1);

  // Nothing of its body is read: it is answered, and the connection closed.
  const { port } = new URL(otlpHttp?.url ?? '');
  const head = 'POST /v1/traces HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n';
  const answer = await new Promise<string>((resolve) => {
    const socket = connect({ port: Number(port), host: '127.0.0.1' }, () =>
      socket.write(`${head}Content-Length: 9000000\r\n\r\n{`),
    );
    let text = '';
    socket.on('data', (chunk) => {
      text += chunk;
    });
    socket.on('close', () => resolve(text));
  });
  t.regex(answer, /^HTTP\/1\.1 429 [\s\S]*connection: close/i);

  const key = readFileSync(join(dataDir, 'secrets', 'otel_ingest_api_key'), 'utf8').trim();
  t.false([401, 429].includes((await post({ authorization: key })).status));
});
