import type { PageFacts } from '../../export/facts.ts';
import { counted, Time } from '../text.tsx';

function listed(words: readonly string[]): string {
  return words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} and ${words.at(-1)}`;
}

/** What an exported page holds, and what it leaves out. */
export function ExportedPart({ facts }: { readonly facts: PageFacts & { readonly chain: string } }) {
  const { range, of, time, records, head, version, madeAt, without, chain } = facts;
  const isWhole = range.from <= of.first && range.to >= of.last;
  return (
    <section class="exported" aria-label="What this file holds">
      <details>
        <summary>
          Incident of <Time ms={time.from} /> to <Time ms={time.to} />: records {range.from.toLocaleString()}{' '}
          to {range.to.toLocaleString()}
          {!isWhole && ` of ${of.first.toLocaleString()} to ${of.last.toLocaleString()}`}
          <span class="quiet">; without {listed(without.map(({ what }) => what))}</span>
        </summary>
        <p>
          This file holds {counted(records, 'record')} and needs no network. Holdfast {version} made it at{' '}
          <Time ms={madeAt} />. It leaves out:
        </p>
        <ul>
          {without.map(({ what, which }) => (
            <li key={what}>
              {what}: {which}
            </li>
          ))}
        </ul>
        <p>
          Head <code class="head">{head}</code>
          <br />
          {chain}
        </p>
      </details>
    </section>
  );
}
