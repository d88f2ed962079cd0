import { type Asking, askInstance } from '../../../core/host/operations/ask.ts';
import { type DrillStatus, STATUS_PATH } from '../control.ts';

/** Asks the instance that runs on the data folder. @throws HF_CONTROL_UNREACHABLE, HF_RESTORE_RUNNING */
export const ask = <T extends object>(asking: Asking, path: string, body: object): Promise<T> =>
  askInstance<T>(asking, path, body, 'it runs no restore drills');

export const statusOf = (asking: Asking): Promise<DrillStatus> => ask<DrillStatus>(asking, STATUS_PATH, {});
