/** What operators see of OpenAPI documents: the digest and the operations of one, and whether those that are pinned changed. */
import { HttpClient } from '../../../core/host/http/client.ts';
import type { CommandDefinition } from '../../../core/host/plugin/command.ts';
import type { CheckDefinition, CheckResult } from '../../../core/host/plugin/diagnosis.ts';
import { plainText, table } from '../../../core/host/terminal.ts';
import { isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import {
  DOCUMENT_LIMIT,
  documentName,
  FETCH_MS,
  findDocument,
  findPinned,
  readDocument,
} from '../openapi/source.ts';
import { readRouteEntries } from '../routes/entries.ts';

const sourceClient = () => new HttpClient({ timeoutMs: FETCH_MS, answerLimit: DOCUMENT_LIMIT });

/** `holdfast gateway openapi <document>`: what the entry of a route needs to know of a document. */
export const openapiCommand: CommandDefinition = {
  name: 'gateway openapi <document>',
  summary: 'Shows the digest and the operations of an OpenAPI document, a file or an address, for a route',
  example: 'holdfast gateway openapi ./tickets.yaml',
  async run([document = ''], _flags, { json, print, terminal, signal }) {
    const http = sourceClient();
    try {
      const found = await findDocument(document, http, signal);
      const { title, version, operations } = await readDocument(document, found);
      const { digest } = found;
      if (json) return print(JSON.stringify({ digest, title, version, operations }, null, 2));
      print(`digest: '${digest}'`);
      print(plainText(`${title} ${version}: ${operations.length} operations`));
      const rows = operations.map(({ id, method, path, tags, problem }) =>
        [id, `${method} ${path}`, tags.join(', '), problem === undefined ? 'yes' : `no: ${problem}`].map(
          plainText,
        ),
      );
      const [head = [], ...lines] = table(
        [['operation', 'request', 'tags', 'can be a tool'], ...rows],
        terminal,
      );
      for (const line of head) print(terminal.paint('bold', line));
      for (const line of lines.flat()) print(line);
    } finally {
      await http.close();
    }
  },
};

/** A check of `holdfast doctor`: whether the documents are still those that the entries pin. @param routes entries of the configuration */
export function documentsCheck(routes: readonly unknown[]): CheckDefinition | undefined {
  const pinned = readRouteEntries(routes, process.env).definitions.flatMap(({ entry: { name, openapi } }) =>
    openapi ? [{ name, ...openapi }] : [],
  );
  if (pinned.length === 0) return undefined;
  return {
    name: 'gateway.openapi',
    async run({ signal }) {
      const http = sourceClient();
      try {
        const results = await Promise.all(pinned.map((one) => lookAt(one, http, signal)));
        const worst = (['fail', 'unknown', 'ok'] as const).find((state) =>
          results.some((one) => one.state === state),
        );
        const remedy = results.find(({ state }) => state === worst)?.remedy;
        return {
          state: worst ?? 'unknown',
          lookedAt: results.map(({ lookedAt }) => lookedAt).join(', '),
          found: results.map(({ found }) => found).join('; '),
          ...(remedy !== undefined && { remedy }),
        };
      } finally {
        await http.close();
      }
    },
  };
}

interface Pinned {
  readonly name: string;
  readonly document: string;
  readonly digest: string;
}

async function lookAt(
  { name, document, digest }: Pinned,
  http: HttpClient,
  signal: AbortSignal,
): Promise<CheckResult> {
  const lookedAt = documentName(document);
  try {
    await findPinned(document, digest, http, signal);
    return { state: 'ok', lookedAt, found: `the document of ${name} has the digest that its entry pins` };
  } catch (error) {
    if (!isCoded(error)) throw error;
    const isChanged = isCoded(error, 'HF_GATEWAY_OPENAPI_CHANGED');
    return {
      state: isChanged ? 'fail' : 'unknown',
      lookedAt,
      found: `route ${name}: ${error.what}`,
      remedy: error.remedy,
    };
  }
}
