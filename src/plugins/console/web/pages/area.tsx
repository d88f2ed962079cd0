import { useAnswer } from '../answer.ts';
import { address, at } from '../location.ts';
import { Shown } from '../parts/states.tsx';
import { brief } from '../text.tsx';

/** What a plugin shows of itself, as it declares it: the console draws it. */
type Section =
  | {
      readonly kind: 'facts';
      readonly title: string;
      readonly facts: readonly { readonly name: string; readonly value: string; readonly actor?: string }[];
    }
  | {
      readonly kind: 'table';
      readonly title: string;
      readonly columns: readonly string[];
      readonly rows: readonly (readonly unknown[])[];
    }
  | { readonly kind: 'text'; readonly title: string; readonly text: string };

interface AreaData {
  readonly title: string;
  readonly sections: readonly Section[];
}

/** The page of a plugin. */
export function AreaPage({ name }: { name: string }) {
  const answer = useAnswer<AreaData>(`/api/pages/${encodeURIComponent(name)}`, { at: at.value });
  return (
    <Shown of={answer} isEmpty={({ sections }) => sections.length === 0}>
      {({ title, sections }) => (
        <>
          <h1>{title}</h1>
          {sections.map((section) => (
            <section class="card" key={section.title}>
              <h2>{section.title}</h2>
              <Drawn section={section} />
            </section>
          ))}
        </>
      )}
    </Shown>
  );
}

function Drawn({ section }: { section: Section }) {
  switch (section.kind) {
    case 'facts':
      return (
        <dl class="facts">
          {section.facts.map(({ name, value, actor }) => (
            <div key={name}>
              <dt>{actor ? <a href={address(`/actors/${actor}`)}>{name}</a> : name}</dt>
              <dd>{value}</dd>
            </div>
          ))}
        </dl>
      );
    case 'table':
      return (
        <div class="scroll">
          <table>
            <thead>
              <tr>
                {section.columns.map((column) => (
                  <th scope="col" key={column}>
                    {column}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {section.rows.map((row, index) => (
                <tr key={`${index} ${String(row[0])}`}>
                  {row.map((cell, column) => (
                    <td key={section.columns[column]}>{brief(cell ?? '', 300)}</td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      );
    case 'text':
      return <pre>{section.text}</pre>;
  }
}
