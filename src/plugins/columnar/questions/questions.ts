import { z } from 'zod';
import type { HttpSurface } from '../../../core/host/http/contract.ts';
import { askInstance, type InstanceAddress } from '../../../core/host/operations/control-client.ts';
import { serveOperation } from '../../../core/host/operations/serve.ts';
import { systemClock } from '../../../core/kernel/clock.ts';
import { isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import type { AnswerText } from '../answer.ts';
import { type AskOptions, Database, MOST_SECONDS } from '../database.ts';
import { ColumnarError } from '../errors.ts';
import { openEngine, schemaOptions } from '../open.ts';
import type { ColumnarOptions } from '../options.ts';
import { replicasCheck, retentionCheck } from './kept.ts';
import { explainMistakes } from './mistakes.ts';
import { verifyNas } from './nas.ts';
import { verify } from './verify.ts';

export const MOST_LIMIT = 10_000;

const seconds = z.int().min(1).max(MOST_SECONDS);
const ask = z.strictObject({
  sql: z.string().min(1).max(20_000),
  limit: z.int().min(1).max(MOST_LIMIT),
  seconds,
});
const bounded = z.strictObject({ seconds });
const nas = z.strictObject({ host: z.string().min(1).max(253), seconds });

interface Question {
  readonly serve: (surface: HttpSurface, path: string, database: Database) => void;
  readonly answer: (database: Database, body: object, signal: AbortSignal) => Promise<object>;
}

function question<B>(
  schema: z.ZodType<B>,
  answer: (database: Database, body: B, signal: AbortSignal) => Promise<object>,
): Question {
  return {
    serve: (surface, path, database) =>
      serveOperation(surface, path, schema, (body, { signal }) => answer(database, body, signal)),
    answer: (database, body, signal) => answer(database, schema.parse(body), signal),
  };
}

/** The questions of commands to the database, by the running instance or to a server directly. */
const QUESTIONS = {
  // The answer stays text, because the command should parse it and not the process that also runs the gateway.
  ask: question(ask, (database, { sql, limit, seconds }, signal) =>
    askReading(database, sql, limit, { signal, maxSeconds: seconds }),
  ),
  verify: question(bounded, (database, { seconds }, signal) =>
    verify(database, { signal, maxSeconds: seconds }),
  ),
  nas: question(nas, (database, { host, seconds }, signal) =>
    verifyNas(host, database, { signal, maxSeconds: seconds }),
  ),
  drift: question(bounded, async (database, { seconds }, signal) => ({
    drift: await database.drift({ signal, maxSeconds: seconds }),
    tables: await database.tables({ signal, maxSeconds: seconds }),
  })),
  retention: question(bounded, (database, { seconds }, signal) =>
    retentionCheck(database, database.databaseName, { signal, maxSeconds: seconds }),
  ),
  replicas: question(bounded, (database, { seconds }, signal) =>
    replicasCheck(database, database.databaseName, database.expectedReplicas, {
      signal,
      maxSeconds: seconds,
    }),
  ),
} as const;

/**
 * Answers a person's own statement, whoever hands it on: a command, an agent's tool, a page of the console.
 *
 * @param limit the most rows of the answer
 * @throws HF_COLUMNAR_REFUSED, HF_COLUMNAR_RAW_TARGET, HF_COLUMNAR_WRONG_TABLE; as `ColumnarDatabase.ask`
 */
export async function askReading(
  database: Database,
  sql: string,
  limit: number,
  options: AskOptions & { readonly signal: AbortSignal },
): Promise<AnswerText> {
  await explainMistakes(sql, database, options.signal);
  return database.askText(sql, limit, options);
}

const pathOf = (name: string): string => `/columnar/${name}`;

/** Answers a question in this process. @throws ZodError the body is not the question's; whatever the question throws */
export function answerQuestion(
  name: keyof typeof QUESTIONS,
  body: object,
  database: Database,
  signal: AbortSignal,
): Promise<object> {
  return QUESTIONS[name].answer(database, body, signal);
}

/** Answers commands. */
export function serveQuestions(surface: HttpSurface, database: Database): void {
  for (const [name, { serve }] of Object.entries(QUESTIONS)) serve(surface, pathOf(name), database);
}

const NONE_HERE = 'the instance that runs here has none; `holdfast status` says why';

/**
 * Asks the instance that runs on the data folder; where none runs, the server that the options name. The embedded folder
 * is never opened a second time.
 *
 * @throws HF_COLUMNAR_NOT_RUNNING there is neither; whatever the question throws
 */
export async function askDatabase<T extends object>(
  name: keyof typeof QUESTIONS,
  body: object,
  asking: InstanceAddress,
  options: ColumnarOptions,
): Promise<T> {
  try {
    return await askInstance<T>(asking, pathOf(name), body, NONE_HERE);
  } catch (error) {
    if (!isCoded(error, 'HF_CONTROL_UNREACHABLE')) throw error;
    if (options.url !== undefined) return (await direct(name, body, asking, options)) as T;
    const said = String(error.details.reason);
    const reason = said === NONE_HERE ? said : `${said} (${asking.dataDir}), and it is the embedded one`;
    throw new ColumnarError('HF_COLUMNAR_NOT_RUNNING', { reason });
  }
}

async function direct(
  name: keyof typeof QUESTIONS,
  body: object,
  { dataDir, signal }: InstanceAddress,
  options: ColumnarOptions,
): Promise<object> {
  const engine = await openEngine(options, dataDir, undefined);
  try {
    const database = new Database({ engine, clock: systemClock, schema: schemaOptions(options) });
    return await answerQuestion(name, body, database, signal);
  } finally {
    await engine.close();
  }
}
