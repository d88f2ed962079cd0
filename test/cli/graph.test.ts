import test from 'ava';
import { graphOf, mermaid } from '../../src/cli/graph.ts';
import { loadConfig } from '../../src/core/host/config/load.ts';
import { PluginHost } from '../../src/core/host/plugin/host.ts';
import { call, root } from '../support/cli.ts';
import { doorsConfig } from '../support/doors-config.ts';
import { tempDir } from '../support/temp.ts';

test('[C11] graph draws schedule, topic, actor, effect and adapter from registrations alone', async (t) => {
  const cwd = tempDir(t);
  doorsConfig(cwd);
  const { code, out } = await call(['graph'], { cwd });
  t.is(code, 0);
  t.is(
    out,
    `flowchart LR
  subgraph schedules["Schedules"]
    schedule_2a_2a_2a_2a_2a{{"* * * * *"}}
  end
  subgraph topics["Topics"]
    topic_certificate_judged(["certificate.judged"])
    topic_data_checked(["data.checked"])
    topic_log_archive_deleted(["log.archive_deleted"])
    topic_log_archived(["log.archived"])
    topic_log_checkpoint_saved(["log.checkpoint_saved"])
    topic_test_knock(["test.knock"])
    topic_test_tick(["test.tick"])
  end
  subgraph actors["Actors"]
    actor_runtime_certificate["runtime.certificate<br><small>core</small>"]
    actor_runtime_clock["runtime.clock<br><small>core</small>"]
    actor_runtime_data_check["runtime.data_check<br><small>core</small>"]
    actor_runtime_lifecycle["runtime.lifecycle<br><small>core</small>"]
    actor_runtime_retention["runtime.retention<br><small>core</small>"]
    actor_test_door["test.door<br><small>doors</small>"]
  end
  subgraph effects["Effects"]
    effect_alerts_raise>"alerts.raise<br><small>core</small>"]
    effect_bell_ring>"bell.ring<br><small>doors</small>"]
    effect_lamp_on>"lamp.on<br><small>doors</small>"]
  end
  subgraph adapters["Adapters"]
    adapter_bell[("bell")]
    adapter_lamp[("lamp")]
  end
  actor_runtime_certificate --> effect_alerts_raise
  actor_runtime_clock --> effect_alerts_raise
  actor_runtime_data_check --> effect_alerts_raise
  actor_test_door --> effect_bell_ring
  actor_test_door --> effect_lamp_on
  effect_bell_ring --> adapter_bell
  effect_bell_ring --> adapter_lamp
  effect_lamp_on --> adapter_lamp
  schedule_2a_2a_2a_2a_2a --> topic_test_tick
  topic_certificate_judged --> actor_runtime_certificate
  topic_data_checked --> actor_runtime_data_check
  topic_log_archive_deleted --> actor_runtime_retention
  topic_log_archived --> actor_runtime_retention
  topic_log_checkpoint_saved --> actor_runtime_lifecycle
  topic_test_knock --> actor_test_door
  topic_test_tick --> actor_test_door
`,
  );
  const json = JSON.parse((await call(['graph', '--json'], { cwd })).out);
  t.deepEqual(
    json.nodes.find(({ name }: { name: string }) => name === 'test.knock'),
    { kind: 'topic', name: 'test.knock', summary: 'Somebody wants in.' },
  );
  t.true(
    json.edges.some(
      ({ from, to }: Record<string, string>) => from === 'topic test.tick' && to === 'actor test.door',
    ),
  );
});

test("[C11] the product's own graph is the same in whatever order its plugins stand", async (t) => {
  const { plugins } = await loadConfig({ cwd: root, env: {} });
  const drawn = (order: typeof plugins) => mermaid(graphOf(new PluginHost(order).register())).join('\n');
  t.is(drawn(plugins.toReversed()), drawn(plugins));
  t.regex(drawn(plugins), /topic_router_iface_change_applied --> actor_reconciler_leg/);
});
