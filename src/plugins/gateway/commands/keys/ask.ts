import { type CommandContext, postControl } from '../../../../core/cli/index.ts';
import { type ErrorCode, errorTable, HoldfastError } from '../../../../core/errors/index.ts';
import { isObject } from '../../../../core/json.ts';
import { KEYS_PATH } from '../../keys/control.ts';

/**
 * Asks the running instance.
 *
 * @returns its answer, a JSON object
 * @throws HF_CONTROL_UNREACHABLE, HF_GATEWAY_KEY_*, HF_LOG_WRITE
 */
export async function askInstance(
  verb: string,
  body: object,
  { dataDir, signal }: Pick<CommandContext, 'dataDir' | 'signal'>,
): Promise<Readonly<Record<string, unknown>>> {
  const { status, body: said } = await postControl(dataDir, `${KEYS_PATH}/${verb}`, body, signal);
  const answer = isObject(said) ? said : {};
  if (status === 200) return answer;
  const { code, details } = answer;
  if (typeof code === 'string' && Object.hasOwn(errorTable, code) && isObject(details)) {
    throw new HoldfastError(code as ErrorCode, details as Record<string, string>);
  }
  const reason = `it answered ${status}; is the gateway among its plugins?`;
  throw new HoldfastError('HF_CONTROL_UNREACHABLE', { dir: dataDir, reason });
}
