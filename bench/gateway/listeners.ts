/** Clients that open streams and listen, over sockets of their own: ten thousand of anything richer weigh too much. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

export type Listening =
  | {
      readonly do: 'open';
      readonly url: string;
      readonly headers: Record<string, string>;
      readonly count: number;
    }
  /** Waits until each has heard a text. */
  | { readonly do: 'hear'; readonly text: string }
  | { readonly do: 'close' };

export interface Listened {
  readonly open: number;
  readonly ms: number;
}

/** Opened at once. */
const WAVE = 100;

const sockets: { readonly socket: Socket; heard: string }[] = [];

process.on('message', async (order: Listening) => {
  const started = performance.now();
  try {
    if (order.do === 'open') await openAll(order);
    if (order.do === 'hear') await Promise.all(sockets.map((one) => heard(one, order.text)));
    if (order.do === 'close') for (const { socket } of sockets.splice(0)) socket.destroy();
    process.send?.({ open: sockets.length, ms: performance.now() - started } satisfies Listened);
  } catch (error) {
    process.send?.({ open: -1, ms: 0, error: String(error) });
  }
});
process.on('disconnect', () => process.exit());
process.send?.({ ready: true });

async function openAll({ url, headers, count }: Extract<Listening, { do: 'open' }>): Promise<void> {
  const { hostname, port, host, pathname } = new URL(url);
  const given = { host, accept: 'text/event-stream', ...headers };
  const lines = Object.entries(given).map(([name, value]) => `${name}: ${value}`);
  const request = [`GET ${pathname} HTTP/1.1`, ...lines, '', ''].join('\r\n');
  while (sockets.length < count) {
    const wave = Array.from({ length: Math.min(WAVE, count - sockets.length) }, async () => {
      const socket = connect({ host: hostname, port: Number(port) });
      const one = { socket, heard: '' };
      socket.setEncoding('latin1').on('error', () => undefined);
      socket.on('data', (text) => {
        one.heard += text;
      });
      sockets.push(one);
      socket.write(request);
      await heard(one, '\r\n\r\n');
      if (!one.heard.startsWith('HTTP/1.1 200 ')) throw new Error(one.heard.slice(0, 400));
      one.heard = '';
    });
    await Promise.all(wave);
  }
}

async function heard(one: (typeof sockets)[number], text: string): Promise<void> {
  while (!one.heard.includes(text)) {
    if (one.socket.destroyed) throw new Error(`a stream ended: ${one.heard.slice(0, 400)}`);
    await Promise.race([once(one.socket, 'data'), once(one.socket, 'close')]);
  }
}
