import type { ShownBeat } from './beat-history.ts';
import type { MonitorView } from './view.ts';

/** The read side as Uptime Kuma has it, for what was written for that: numbers for states, messages blanked. */

const STATUS = { down: 0, up: 1, late: 2, waiting: 2, paused: 3 } as const;

export interface Numbered {
  readonly id: number;
  readonly view: MonitorView;
}

/** `/api/status-page/<slug>` */
export function kumaPage(slug: string, monitors: readonly Numbered[]) {
  return {
    config: {
      slug,
      title: slug,
      description: null,
      icon: null,
      autoRefreshInterval: 300,
      theme: 'auto',
      published: true,
      showTags: false,
      customCSS: '',
      footerText: null,
      showPoweredBy: false,
      showCertificateExpiry: false,
    },
    incident: null,
    publicGroupList: [
      {
        id: 1,
        name: 'Services',
        weight: 1,
        monitorList: monitors.map(({ id, view }) => ({ id, name: view.title, sendUrl: 0, type: 'push' })),
      },
    ],
    maintenanceList: [],
  };
}

/** `/api/status-page/heartbeat/<slug>` @param beatsOf the newest beats of a monitor, oldest first */
export async function kumaHeartbeats(
  monitors: readonly Numbered[],
  beatsOf: (monitor: string) => Promise<readonly ShownBeat[]>,
) {
  const heartbeatList: Record<string, unknown> = {};
  const uptimeList: Record<string, number> = {};
  for (const { id, view } of monitors) {
    const list = (await beatsOf(view.name)).map(({ at, up, ping }) => ({
      status: up ? 1 : 0,
      time: spaced(at),
      msg: '',
      ping: ping ?? null,
    }));
    // No beat came to tell of an absence.
    if (view.state !== 'up') {
      const since = view.since ? Date.parse(view.since) : 0;
      list.push({ status: STATUS[view.state], time: spaced(since), msg: '', ping: null });
    }
    heartbeatList[id] = list;
    uptimeList[`${id}_24`] = view.uptime24h ?? 0;
  }
  return { heartbeatList, uptimeList };
}

function spaced(ms: number): string {
  return new Date(ms).toISOString().replace('T', ' ').replace('Z', '');
}
