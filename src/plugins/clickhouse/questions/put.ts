import { postControl } from '../../../core/cli/index.ts';
import { systemClock } from '../../../core/clock.ts';
import { HoldfastError, isCoded } from '../../../core/errors/index.ts';
import { isObject } from '../../../core/json.ts';
import { Database } from '../database.ts';
import { openEngine, schemaOptions } from '../open.ts';
import type { ClickhouseOptions } from '../options.ts';
import { pathOf, QUESTIONS, type QuestionName, type Told } from './serve.ts';

interface Asker {
  /** Absolute path. */
  readonly dataDir: string;
  readonly signal: AbortSignal;
}

/**
 * Puts a question to the instance that runs on the data folder; where none runs, to the server that the options name.
 * The embedded folder is never opened a second time.
 *
 * @throws HF_COLUMNAR_NOT_RUNNING neither is there; whatever the question throws
 */
export async function put<T>(
  name: QuestionName,
  body: object,
  { dataDir, signal }: Asker,
  options: ClickhouseOptions,
): Promise<T> {
  try {
    const { status, body: told } = await postControl(dataDir, pathOf(name), body, signal);
    if (status === 200 && isObject(told)) return opened<T>(told);
    const said = isObject(told) ? told.what : undefined;
    const reason =
      status === 404
        ? 'the instance that runs here has none; `holdfast status` says why'
        : String(said ?? `it answered ${status}`);
    throw new HoldfastError('HF_COLUMNAR_NOT_RUNNING', { reason: reason.replace(/\.$/, '') });
  } catch (error) {
    if (!isCoded(error, 'HF_CONTROL_UNREACHABLE')) throw error;
    if (options.url !== undefined) return direct<T>(name, body, dataDir, signal, options);
    const reason = `${String(error.details.reason)} (${dataDir}), and it is the embedded one`;
    throw new HoldfastError('HF_COLUMNAR_NOT_RUNNING', { reason });
  }
}

function opened<T>({ answer, fault }: Told): T {
  if (fault) throw new HoldfastError(fault.code, fault.details);
  return answer as T;
}

async function direct<T>(
  name: QuestionName,
  body: object,
  dataDir: string,
  signal: AbortSignal,
  options: ClickhouseOptions,
): Promise<T> {
  const engine = await openEngine(options, dataDir, undefined);
  try {
    const database = new Database({ engine, clock: systemClock, schema: schemaOptions(options) });
    return (await QUESTIONS[name](database, body, signal)) as T;
  } finally {
    await engine.close();
  }
}
