import type { PushAnswer } from '../../../core/contracts/uptime.ts';
import type { CommandDefinition } from '../../../core/host/plugin/command.ts';
import type { UptimeOptions } from '../options.ts';
import { pingOf, push as pushBeat, statusOf } from './client.ts';

/** `holdfast push`: one beat by hand, with the body of the answer. */
export const push = (options: UptimeOptions): CommandDefinition => ({
  name: 'push <monitor>',
  summary: 'Pushes one beat by hand, and shows the body of the answer whatever its status',
  example: 'holdfast push clickstack-watchdog --msg "by hand" --ping 12',
  flags: [
    { flags: '--status <status>', summary: 'up or down', default: 'up' },
    { flags: '--msg <text>', summary: 'what the monitor shows', default: 'by hand' },
    { flags: '--ping <ms>', summary: 'a non-negative integer of milliseconds' },
  ],
  async run([monitor = ''], { status, msg, ping }, command) {
    const beat = { status: statusOf(status, 'push'), msg: String(msg), ping: pingOf(ping, 'push') };
    const { place, answer } = await pushBeat(options, command, monitor, beat);
    if (command.json) command.print(JSON.stringify({ monitor, place, ...answer }));
    else for (const line of answerLines(answer)) command.print(line);
    return answer.kind === 'delivered' ? 0 : 1;
  },
});

/** An answer for a person: the body first, as it came. */
export function answerLines(answer: PushAnswer): string[] {
  switch (answer.kind) {
    case 'delivered':
      return ['{"ok":true}'];
    case 'refused':
      return [
        answer.body || '(an empty body)',
        `PUSH DELIVERY FAILED: HTTP ${answer.status}${answer.msg === undefined ? '' : `: ${answer.msg}`} (wget exit status ${answer.exitStatus})`,
      ];
    case 'failed':
      return [`PUSH DELIVERY FAILED: ${answer.reason} (wget exit status ${answer.exitStatus})`];
  }
}
