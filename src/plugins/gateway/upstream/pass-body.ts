import type { AnswerBody } from './answer-body.ts';
import type { UpstreamAnswer } from './client.ts';
import { credentialWatch } from './credential.ts';
import { HeardAnswer, HeardEvents, type Told, toldBy, toldByWhole } from './outcome.ts';
import type { PassParts } from './pass-parts.ts';
import { refuse } from './refusals.ts';
import { type EventChanges, eventRewriter } from './rewrite.ts';

/** Answers up to here are sent in one piece, bytes. */
export const WHOLE: number = 64 * 1024;

/** JSON of a size that is known to be small: most answers of tools, in one piece. */
export function passSmall(
  parts: PassParts,
  status: number,
  headers: Readonly<Record<string, string>>,
  answer: Buffer,
): Told {
  const { exchange } = parts;
  credentialWatch(parts.route)(answer);
  if (answer.length === 0) return refuse(parts, 502, 'answers a request without a body', 'http_error');
  const told = toldByWhole(answer);
  exchange.begin(status, { ...headers, 'content-length': String(answer.length) });
  exchange.end(answer);
  return told;
}

/** JSON: a small answer is held until it is whole, so that one that breaks off is an error and not half an answer. */
export async function passJson(
  parts: PassParts,
  status: number,
  headers: Readonly<Record<string, string>>,
  body: AnswerBody,
): Promise<Told> {
  const { exchange } = parts;
  const heard = new HeardAnswer();
  exchange.onClose(() => heard.free());
  const watch = credentialWatch(parts.route);
  await body.each((part) => {
    watch(part);
    heard.push(part);
    if (exchange.begun) return exchange.write(part);
    if (heard.size <= WHOLE) return undefined;
    exchange.begin(status, headers);
    return exchange.write(heard.bytes());
  }, parts.route.entry.timeoutMs);
  if (heard.size === 0) return refuse(parts, 502, 'answers a request without a body', 'http_error');
  const told = heard.told();
  if (exchange.begun) {
    exchange.end();
  } else {
    exchange.begin(status, { ...headers, 'content-length': String(heard.size) });
    exchange.end(heard.bytes());
  }
  return told;
}

/** An event stream: each part goes on as it comes, and a slow client slows its upstream down. */
export async function passEvents(
  { exchange, route }: PassParts,
  { statusCode: status, body }: UpstreamAnswer,
  headers: Readonly<Record<string, string>>,
  changes: EventChanges | undefined,
): Promise<Told> {
  const heard = new HeardEvents();
  const rewriter = changes && eventRewriter(changes);
  const watch = credentialWatch(route);
  exchange.begin(status, { ...headers, 'x-accel-buffering': 'no' }); // for a proxy in front of us
  exchange.flush();
  for await (const chunk of body) {
    watch(chunk);
    heard.push(chunk);
    const next = rewriter ? rewriter.feed(chunk) : chunk;
    if (next.length > 0) await exchange.write(next);
  }
  exchange.end();
  return status < 400 ? heard.told() : { outcome: 'http_error' };
}

/** A JSON error passes as it is, unless the upstream repeats the gateway's own credential in it. */
export function passError(
  parts: PassParts,
  status: number,
  headers: Readonly<Record<string, string>>,
  bytes: Buffer,
): Told {
  const { exchange, route } = parts;
  const own = Object.values(route.credential(undefined)).map((value) => value.replace(/^Bearer /, ''));
  if (own.some((secret) => secret !== '' && bytes.includes(secret))) {
    return refuse(parts, status >= 500 ? 502 : status, `answers with status ${status}`, 'http_error');
  }
  exchange.begin(status, { ...headers, 'content-length': String(bytes.length) });
  exchange.end(bytes);
  const { code } = errorCode(bytes);
  return { outcome: 'http_error', ...(code !== undefined && { code }) };
}

function errorCode(bytes: Buffer): Partial<Told> {
  try {
    return toldBy(JSON.parse(bytes.toString('utf8')));
  } catch {
    return {};
  }
}
