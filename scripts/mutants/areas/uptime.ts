import type { Area } from '../mutation.ts';

const area: Area = {
  sources: ['src/machines/uptime', 'src/plugins/uptime', 'src/core/contracts/uptime.ts'],
  mutations: [
    {
      breaks: 'O16: the monitor of the watchdog is DOWN after 1,200 s',
      id: 'O16',
      find: "title: 'Observability watchdog', interval: 300, retries: 1,",
      put: "title: 'Observability watchdog', interval: 600, retries: 2,",
    },
    {
      breaks: 'O16: the monitor of the watchdog misses no beat',
      id: 'O16',
      find: 'interval: 300, retries: 1, retryInterval: 300,',
      put: 'interval: 300, retries: 0, retryInterval: 300,',
    },
    {
      breaks: 'O16: there is no monitor of the reconciler',
      tests: ['uptime-monitor/'],
      find: "{ name: 'router-ula', title: 'ULA reconciler', interval: 300, retries: 0, remindEvery: 3_600 },",
      put: '',
    },
    {
      breaks: 'O16: another port than Uptime Kuma',
      tests: ['uptime-monitor/'],
      find: 'default(3001)',
      put: 'default(3002)',
    },
    {
      breaks: 'O16: a refused push is answered with 400',
      id: 'O16',
      find: 'return { status: 404, body: { ok: false, msg, reason } };',
      put: 'return { status: 400, body: { ok: false, msg, reason } };',
    },
    {
      breaks: 'O16: every status but down is up',
      id: 'O16',
      find: "= status === 'up' || status === '';",
      put: "= status !== 'down';",
    },
    {
      breaks: 'O16: a ping beyond the largest is taken',
      id: 'O16',
      find: '|| $1 > LARGEST_PING)',
      put: ')',
    },
    {
      breaks: 'O16: a paused monitor takes beats',
      id: 'O16',
      find: "if ($1.to.value === 'paused') return $2(name);",
      put: '',
    },
    {
      breaks: 'O16: a probe is a beat',
      tests: ['uptime-monitor/', 'plugins/uptime/'],
      find: 'if (probe !== undefined) return $1($2, name);',
      put: '',
    },
    {
      breaks: 'O16: a DOWN monitor does not come back',
      id: 'O16',
      find: "{ guard: 'isUp', target: 'up', actions: [raiseUp, 'noteBeat', 'becomeUp'] },",
      put: '',
    },
    {
      breaks: 'O16: nobody hears that it is DOWN',
      id: 'O16',
      find: "after: { lost: { target: 'down', actions: ['becomeDown', $1] } },",
      put: "after: { lost: { target: 'down', actions: ['becomeDown'] } },",
    },
    {
      breaks: 'O16: nobody hears that it is up again',
      id: 'O16',
      find: "actions: [raiseUp, 'noteBeat', 'becomeUp']",
      put: "actions: ['noteBeat', 'becomeUp']",
    },
    {
      breaks: 'O16: a beat that says down is up',
      id: 'O16',
      find: "$1.type === 'BEAT' && $1.up === true",
      put: "$1.type === 'BEAT'",
    },
    {
      breaks: 'O16: restarts hide for ever that no beats come',
      id: 'O16',
      find: 'RESTARTS_FORGIVEN = 3',
      put: 'RESTARTS_FORGIVEN = 3_000',
    },
    {
      breaks: 'O16: an own restart makes a sender late',
      id: 'O16',
      find: "actions: ['configure', 'extendWait'], reenter: true,",
      put: "actions: ['configure'],",
    },
    {
      breaks: 'O16: no reminders while it is DOWN',
      id: 'O16',
      find: "after: { reminder: { target: 'notified', reenter: true, actions: ['countReminder', $1] } },",
      put: '',
    },
    {
      breaks: 'R27: a 2xx without ok is a delivery',
      id: 'R27',
      find: '&& $1.ok === true) return',
      put: ') return',
    },
    {
      breaks: 'R27: any status with ok is a delivery',
      id: 'R27',
      find: 'if (status >= 200 && status < 300 && ',
      put: 'if (',
    },
    {
      breaks: 'O15: a fractional ping is sent as it is',
      id: 'O15',
      find: 'Math.min(Math.max(0, Math.round(ping)), DAY_MS)',
      put: 'ping',
    },
    {
      breaks: 'O15: the msg of a refusal is not kept',
      id: 'O15',
      find: "return { type: 'PUSH_REFUSED', at, status, ...(msg !== undefined && { msg }), body, exitStatus };",
      put: "return { type: 'PUSH_REFUSED', at, status, body: '', exitStatus };",
    },
    {
      breaks: 'O11: a refused push has another exit status than wget',
      tests: ['plugins/uptime/', 'watchdog/'],
      find: 'body, exitStatus: 8 }',
      put: 'body, exitStatus: 1 }',
    },
    {
      breaks: 'R27: the token stays in the body that is kept of an answer',
      id: 'R27',
      find: '$1.textWithout($2(token), $3)',
      put: '$1.text()',
    },
    {
      breaks: 'R27: the token stays in headers and the msg of an answer',
      id: 'R27',
      find: 'maskText(withoutSecrets(text, formsOf(token), TOKEN_MARK), limit)',
      put: 'maskText(text, limit)',
    },
    {
      breaks: 'O16: labelSuffix is no unit of the period',
      tests: ['uptime-monitor/uptime-monitor'],
      find: 'labelSuffix ?? label.slice(-1)',
      put: 'label.slice(-1)',
    },
    {
      breaks: 'O16: a page with a monitor that never beat is up',
      tests: ['uptime-monitor/uptime-monitor'],
      find: "states.every((state) => state === 'up')",
      put: "states.some((state) => state === 'up')",
    },
    {
      breaks: 'O16: beats from before the start are lost',
      tests: ['uptime-monitor/uptime-monitor'],
      find: 'if (beats.length === BEATS_KEPT) break;',
      put: 'if (beats.length >= 0) break;',
    },
    {
      breaks: 'O16: a beat that a paused monitor refused is shown after a restart',
      tests: ['uptime-monitor/'],
      find: "to.value === 'paused' ||",
      put: '',
    },
    {
      breaks: 'O16: a downed beat is shown as up after a restart',
      tests: ['uptime-monitor/uptime-monitor'],
      find: 'up: event.up === true,',
      put: 'up: true,',
    },
  ],
  automatic: {
    sources: [
      'src/machines/uptime-monitor/',
      'src/plugins/uptime-monitor/take-push.ts',
      'src/plugins/uptime-monitor/options.ts',
      'src/plugins/uptime-monitor/push-tokens.ts',
      'src/plugins/uptime/push-client.ts',
      'src/plugins/uptime/doctor.ts',
    ],
    tests: ['machines/uptime-monitor/', 'uptime-monitor/uptime-monitor.test', 'plugins/uptime/'],
  },
};

export default area;
