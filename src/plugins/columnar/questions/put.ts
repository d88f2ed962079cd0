import { type Asking, askInstance } from '../../../core/host/operations/ask.ts';
import { systemClock } from '../../../core/kernel/clock.ts';
import { HoldfastError, isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import { Database } from '../database.ts';
import { openEngine, schemaOptions } from '../open.ts';
import type { ClickhouseOptions } from '../options.ts';
import { answerQuestion, pathOf, type QuestionName } from './serve.ts';

const NONE_HERE = 'the instance that runs here has none; `holdfast status` says why';

/**
 * Puts a question to the instance that runs on the data folder; where none runs, to the server that the options name.
 * The embedded folder is never opened a second time.
 *
 * @throws HF_COLUMNAR_NOT_RUNNING neither is there; whatever the question throws
 */
export async function put<T extends object>(
  name: QuestionName,
  body: object,
  asking: Asking,
  options: ClickhouseOptions,
): Promise<T> {
  try {
    return await askInstance<T>(asking, pathOf(name), body, NONE_HERE);
  } catch (error) {
    if (!isCoded(error, 'HF_CONTROL_UNREACHABLE')) throw error;
    if (options.url !== undefined) return (await direct(name, body, asking, options)) as T;
    const said = String(error.details.reason);
    const reason = said === NONE_HERE ? said : `${said} (${asking.dataDir}), and it is the embedded one`;
    throw new HoldfastError('HF_COLUMNAR_NOT_RUNNING', { reason });
  }
}

async function direct(
  name: QuestionName,
  body: object,
  { dataDir, signal }: Asking,
  options: ClickhouseOptions,
): Promise<object> {
  const engine = await openEngine(options, dataDir, undefined);
  try {
    const database = new Database({ engine, clock: systemClock, schema: schemaOptions(options) });
    return await answerQuestion(name, database, body, signal);
  } finally {
    await engine.close();
  }
}
