import { type CommandContext, postControl } from '../../../core/cli/index.ts';
import { type ErrorCode, HoldfastError } from '../../../core/errors/index.ts';
import { isObject } from '../../../core/json.ts';
import { type DrillStatus, STATUS_PATH } from '../control.ts';

/** Asks the instance that runs on the data folder. @throws HF_CONTROL_UNREACHABLE, HF_RESTORE_RUNNING */
export async function ask(
  { dataDir }: Pick<CommandContext, 'dataDir'>,
  path: string,
  body: object,
  signal: AbortSignal,
): Promise<Record<string, unknown>> {
  const { status, body: answer } = await postControl(dataDir, path, body, signal);
  if (status < 300 && isObject(answer)) return answer;
  const code = isObject(answer) ? (answer.code as ErrorCode) : undefined;
  if (code === 'HF_RESTORE_RUNNING' && isObject(answer)) {
    const id = /Drill (.*) is under way/.exec(String(answer.what))?.[1];
    throw new HoldfastError(code, { id });
  }
  const reason = status === 404 ? 'it runs no restore drills' : `it answered ${status} ${code ?? ''}`.trim();
  throw new HoldfastError('HF_CONTROL_UNREACHABLE', { dir: dataDir, reason });
}

export async function statusOf(
  context: Pick<CommandContext, 'dataDir'>,
  signal: AbortSignal,
): Promise<DrillStatus> {
  return (await ask(context, STATUS_PATH, {}, signal)) as unknown as DrillStatus;
}
