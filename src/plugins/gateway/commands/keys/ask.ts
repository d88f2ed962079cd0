import { type Asking, askInstance } from '../../../../core/operations/index.ts';
import { KEYS_PATH } from '../../keys/control.ts';

/** @throws HF_CONTROL_UNREACHABLE, HF_GATEWAY_KEY_*, HF_LOG_WRITE */
export function askKeys(
  verb: string,
  body: object,
  command: Asking,
): Promise<Readonly<Record<string, unknown>>> {
  const missing = 'it answered 404; is the gateway among its plugins?';
  return askInstance(command, `${KEYS_PATH}/${verb}`, body, missing);
}
