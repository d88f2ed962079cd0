import { setTimeout as sleep } from 'node:timers/promises';
import { askInstance } from '../../../core/host/operations/control-client.ts';
import type { CommandDefinition } from '../../../core/host/plugin/command.ts';
import { NO_COLLECTOR } from '../errors.ts';
import { ROTATION_PATH } from './control.ts';
import type { RotationView } from './view.ts';

const POLL_MS = 200;
/** Exit code when a person must put the key in the store. */
const WAITS = 3;

/** `holdfast stack adopt-ingest-key`: stores the key that the collector uses, e.g. the first one, and rotates nothing. */
export const adoptCommand: CommandDefinition = {
  name: 'stack adopt-ingest-key',
  summary:
    'Puts the ingest key in use in the secrets store, without rotating it; exit 3 when a person must do it',
  example: 'holdfast stack adopt-ingest-key',
  flags: [{ flags: '--replace', summary: 'replace another value that the secrets store holds' }],
  async run(_args, flags, context) {
    const post = (action: string) =>
      askInstance<RotationView>(
        context,
        ROTATION_PATH,
        { action, replace: flags.replace === true },
        NO_COLLECTOR,
      );
    let view = await post('adopt');
    while (view.adoption?.state === 'storing') {
      await sleep(POLL_MS, undefined, { signal: context.signal });
      view = await post('show');
    }
    const { state = 'failed', fingerprint = '', text } = view.adoption ?? {};
    if (context.json) context.print(JSON.stringify({ adoption: view.adoption }));
    else {
      const words = {
        stored:
          text === undefined
            ? `${fingerprint} is in the secrets store already`
            : `${fingerprint} is stored in ${text}`,
        by_hand: `${fingerprint} is not stored: ${text ?? ''}`.replace(/, then add --stored$/, ''),
        failed: `${fingerprint} is not stored: ${text ?? 'it failed'}`,
        storing: '',
      };
      context.print(words[state]);
    }
    return state === 'stored' ? 0 : state === 'by_hand' ? WAITS : 1;
  },
};
