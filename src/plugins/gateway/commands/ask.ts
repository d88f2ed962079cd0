import { type Asking, askInstance } from '../../../core/host/operations/ask.ts';

/**
 * Asks the gateway that runs on the data folder.
 *
 * @throws HF_CONTROL_UNREACHABLE none runs, or it runs no gateway; and what it refuses, HF_GATEWAY_*, HF_LOG_WRITE
 */
export function askGateway<T extends object>(command: Asking, path: string, body: object = {}): Promise<T> {
  return askInstance<T>(command, path, body, 'it runs no gateway');
}
