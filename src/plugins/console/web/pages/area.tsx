import { Fragment } from 'preact';
import { useState } from 'preact/hooks';
import type { PageAnswer, PageSection, PagesAnswer } from '../../api/types.ts';
import { useAnswer } from '../answer.ts';
import { Actions } from '../components/actions.tsx';
import { Inputs } from '../components/inputs.tsx';
import { Series } from '../components/series.tsx';
import { Shown, StatusMark } from '../components/states.tsx';
import { Changes } from '../components/tree.tsx';
import { Waterfall } from '../components/waterfall.tsx';
import { address, at, params } from '../location.ts';
import { brief, bytes, Countdown, duration, Time } from '../text.tsx';

type Page = PagesAnswer['pages'][number];
type Cell = string | number | boolean | null;
type Format = 'text' | 'number' | 'time' | 'instant' | 'duration' | 'bytes';

/** The page of a plugin: it says what, the console how. */
export function AreaPage({ page }: { page: Page }) {
  return (
    <>
      <h1>{page.title}</h1>
      {page.inputs.length > 0 && <Inputs inputs={page.inputs} />}
      <AreaSections page={page} />
      <Actions area={page.area} />
    </>
  );
}

function AreaSections({ page: { name, inputs, isCostly } }: { page: Page }) {
  const [round, setRound] = useState(0);
  const filled = Object.fromEntries(
    inputs.flatMap(({ name: input }) => {
      const value = params.value.get(input);
      return value === null ? [] : [[input, value]];
    }),
  );
  const question = { ...filled, at: at.value };
  const asked = isCostly ? 'once' : 'live';
  const answer = useAnswer<PageAnswer>(`/api/pages/${encodeURIComponent(name)}`, question, asked, round);
  const { error, data, loading } = answer;
  return (
    <>
      {isCostly && (
        <p class="asked-at quiet">
          <span role="status">{loading ? 'Asking …' : data && !error && <AsOf ms={data.time} />}</span>
          {at.value === undefined && (
            <button type="button" onClick={() => setRound(round + 1)}>
              Ask again
            </button>
          )}
        </p>
      )}
      <Shown
        // What was found for another question would stand below the error of this one.
        of={error && isCostly ? { error, loading } : answer}
        isEmpty={({ sections }) => sections.length === 0}
        empty="There is nothing to show at this moment."
      >
        {({ sections }) => (
          <>
            {sections.map((section, index) => (
              <section class="card" key={`${index} ${section.title}`}>
                {section.title && <h2>{section.title}</h2>}
                <Drawn section={section} />
              </section>
            ))}
          </>
        )}
      </Shown>
    </>
  );
}

function AsOf({ ms }: { ms: number }) {
  return (
    <>
      As of <Time ms={ms} />
    </>
  );
}

function Value({ value, format }: { value: Cell; format?: Format }) {
  if (value === null) return <span class="quiet">–</span>;
  if (typeof value === 'boolean') return <>{value ? 'yes' : 'no'}</>;
  if (typeof value === 'string') return <>{brief(value, 500)}</>;
  if (format === 'time') return <Time ms={value} />;
  if (format === 'instant') return <Time ms={value} millis />;
  if (format === 'duration') return <>{duration(value)}</>;
  if (format === 'bytes') return <>{bytes(value)}</>;
  return <>{value.toLocaleString()}</>;
}

type Links = Pick<Extract<PageSection, { kind: 'table' }>['rows'][number], 'actor' | 'seq' | 'page'>;

/** The way to the actor, the record or the page behind a fact. */
function Linked({ actor, seq, page }: Links) {
  return (
    <>
      {actor !== undefined && (
        <a class="actor" href={address(`/actors/${actor}`)}>
          {actor}
        </a>
      )}{' '}
      {seq !== undefined && <a href={address(`/records/${seq}`, { at: seq })}>record {seq}</a>}{' '}
      {page && <a href={address(`/area/${page.name}`, page.inputs)}>{page.title ?? page.name}</a>}
    </>
  );
}

function Drawn({ section }: { section: PageSection }) {
  switch (section.kind) {
    case 'facts':
      return (
        <dl class="facts">
          {section.facts.map(({ label, value, format, status, since, until, ...links }) => (
            <div key={label}>
              <dt>{label}</dt>
              <dd>
                {status && <StatusMark status={status} />} <Value value={value} {...(format && { format })} />
                {since !== undefined && (
                  <span class="quiet">
                    {' '}
                    since <Time ms={since} />
                  </span>
                )}
                {until !== undefined && (
                  <span class="quiet">
                    {' '}
                    until <Time ms={until} />
                    {at.value === undefined && (
                      <>
                        , <Countdown due={until} />
                      </>
                    )}
                  </span>
                )}{' '}
                <Linked {...links} />
              </dd>
            </div>
          ))}
        </dl>
      );
    case 'table':
      return <Table section={section} />;
    case 'text':
      return <pre>{section.text}</pre>;
    case 'chart':
      return (
        <Series
          series={section.series}
          form={section.form ?? 'lines'}
          {...(section.unit !== undefined && { unit: section.unit })}
        />
      );
    case 'bars':
      return <Bars section={section} />;
    case 'changes':
      return <Changes changes={section.changes} />;
    case 'waterfall':
      return <Waterfall spans={section.spans} />;
  }
}

function Table({
  section: { title = 'Table', columns, rows },
}: {
  section: Extract<PageSection, { kind: 'table' }>;
}) {
  const [open, setOpen] = useState<ReadonlySet<number>>(new Set());
  if (rows.length === 0) return <p class="quiet">None.</p>;
  const isLinked = rows.some(
    ({ actor, seq, page, status, facts }) => (actor ?? seq ?? page ?? status ?? facts) !== undefined,
  );
  const turn = (index: number) => setOpen(open.symmetricDifference(new Set([index])));
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached by the keyboard
    <section class="scroll" tabIndex={0} aria-label={title}>
      <table>
        <thead>
          <tr>
            {columns.map(({ name, title, format }) => (
              <th scope="col" key={name} class={format && NUMERIC.has(format) ? 'numeric' : undefined}>
                {title}
              </th>
            ))}
            {isLinked && <th scope="col">See</th>}
          </tr>
        </thead>
        <tbody>
          {rows.map(({ cells, status, facts, ...links }, index) => (
            <Fragment key={`${index} ${columns[0] && cells[columns[0].name]}`}>
              <tr class={status === 'failing' || status === 'degraded' ? `row-${status}` : undefined}>
                {columns.map(({ name, format }) => (
                  <td key={name} class={cellClass(cells[name] ?? null, format)}>
                    <Value value={cells[name] ?? null} {...(format && { format })} />
                  </td>
                ))}
                {isLinked && (
                  <td class="see">
                    {status && <StatusMark status={status} />} <Linked {...links} />{' '}
                    {facts && Object.keys(facts).length > 0 && (
                      <button type="button" aria-expanded={open.has(index)} onClick={() => turn(index)}>
                        {open.has(index) ? 'less' : 'more'}
                      </button>
                    )}
                  </td>
                )}
              </tr>
              {facts && open.has(index) && (
                <tr>
                  <td colSpan={columns.length + 1}>
                    <dl class="facts row-facts">
                      {Object.entries(facts).map(([name, value]) => (
                        <div key={name}>
                          <dt>{name}</dt>
                          <dd>{String(value)}</dd>
                        </div>
                      ))}
                    </dl>
                  </td>
                </tr>
              )}
            </Fragment>
          ))}
        </tbody>
      </table>
    </section>
  );
}

const NUMERIC: ReadonlySet<Format> = new Set(['number', 'duration', 'bytes']);

function cellClass(value: Cell, format: Format | undefined): string | undefined {
  if (format && NUMERIC.has(format) && typeof value === 'number') return 'numeric';
  if (typeof value !== 'string') return undefined;
  return value.includes('\n') ? 'long lines' : value.length > 40 ? 'long' : undefined;
}

/** Names with a number each; the number stands beside its bar. */
function Bars({ section: { bars, unit = '' } }: { section: Extract<PageSection, { kind: 'bars' }> }) {
  if (bars.length === 0) return <p class="quiet">None.</p>;
  const most = Math.max(...bars.map(({ value }) => Math.abs(value)), Number.MIN_VALUE);
  return (
    <ul class="bars">
      {bars.map(({ name, value, status, ...links }, index) => (
        <li key={`${index} ${name}`}>
          <span class="bar-name">
            {status && <StatusMark status={status} />} {brief(name, 200)} <Linked {...links} />
          </span>
          <span class="bar-track" aria-hidden="true">
            <span
              class={`bar-fill ${status ?? ''}`}
              style={{ width: `${((Math.abs(value) / most) * 100).toFixed(2)}%` }}
            />
          </span>
          <span class="bar-value">
            {value.toLocaleString()} {unit}
          </span>
        </li>
      ))}
    </ul>
  );
}
