import { request as httpRequest, type IncomingHttpHeaders } from 'node:http';

export interface RawAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  /** The body as JSON. */
  json(): {
    readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown };
  } & {
    readonly result?: Readonly<Record<string, unknown>>;
    readonly id?: unknown;
  };
}

/** A request with any header, also those that `fetch` keeps for itself. */
export function send(
  url: string,
  {
    method = 'POST',
    headers = {},
    body,
  }: { method?: string; headers?: Record<string, string | string[]>; body?: unknown },
): Promise<RawAnswer> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(url, { method, headers, agent: false }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () => {
        const text = Buffer.concat(chunks).toString('utf8');
        const { statusCode: status = 0, headers: given } = response;
        resolve({ status, headers: given, text, json: () => JSON.parse(text) });
      });
    });
    request.on('error', reject);
    request.end(
      body === undefined || typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body),
    );
  });
}
