import type { CheckDefinition } from '../../../core/host/plugin/diagnosis.ts';
import type { AlertsOptions } from '../options.ts';
import { rejectedByUi } from './ui-limits.ts';

/** The check of `holdfast doctor stack` that names the alerts which the UI will refuse, before any is upserted (O29). */
export function uiAlertsCheck({ rules, hyperdx }: Pick<AlertsOptions, 'rules' | 'hyperdx'>): CheckDefinition {
  return {
    name: 'stack.ui_alerts',
    run() {
      if (!hyperdx) {
        const lookedAt = "the configuration of the UI's alerts";
        const found = 'nothing to look at: no UI is configured, so no alert is sent to one';
        return {
          state: 'unknown',
          lookedAt,
          found,
          remedy: 'Name it by `hyperdx` of alerts(), if there is one.',
        };
      }
      const lookedAt = `the alerts for ${new URL(hyperdx.url).origin}`;
      const wanted = rules.flatMap((rule) => {
        const tile = hyperdx.tiles[rule.name];
        return tile ? [{ rule, tile }] : [];
      });
      if (wanted.length === 0) {
        const found = 'nothing to look at: no tile is configured, so no alert is sent to the UI';
        return {
          state: 'unknown',
          lookedAt,
          found,
          remedy: 'Name a tile for each alert in `hyperdx.tiles`.',
        };
      }
      const reasons = wanted.flatMap(({ rule: { title, measure, window }, tile: { query } }) => {
        const { table: source, take } = measure;
        return rejectedByUi({ name: title, query, source, take, interval: window }) ?? [];
      });
      if (reasons.length > 0) {
        const remedy = 'Take the tile out of `hyperdx.tiles`; Holdfast evaluates the rule by itself.';
        return { state: 'warn', lookedAt, found: reasons.join(' '), remedy };
      }
      return {
        state: 'ok',
        lookedAt,
        found: `none of the ${wanted.length} is one that the UI is known to refuse`,
      };
    },
  };
}
