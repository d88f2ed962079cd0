import type { Area } from '../mutation.ts';

const area: Area = {
  sources: ['src/machines/uptime', 'src/plugins/uptime', 'src/core/contracts/uptime.ts'],
  mutations: [],
  automatic: {
    sources: [
      'src/machines/uptime-monitor/',
      'src/plugins/uptime-monitor/take-push.ts',
      'src/plugins/uptime/push-client.ts',
    ],
    tests: [
      'test/machines/uptime-monitor/',
      'test/plugins/uptime-monitor/uptime-monitor.test',
      'test/plugins/uptime/',
    ],
  },
};

export default area;
