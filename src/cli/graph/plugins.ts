import type { Registrations } from '../../core/host/plugin/registrations.ts';

/** The enabled plugins as a Markdown table: what each is for, what it gives and takes, and where it is described. */
export function pluginTable(registrations: Registrations): string[] {
  const of = <T extends { owner: string }>(all: readonly T[], owner: string, name: (one: T) => string) =>
    listed(all.filter((one) => one.owner === owner).map(name));
  return [
    '| plugin | what it is for | provides | uses | surfaces | actors | docs |',
    '| --- | --- | --- | --- | --- | --- | --- |',
    ...registrations.plugins.map(({ name, about, provides, requires, wants }) =>
      row([
        `\`${name}\``,
        about ? `${about.area}: ${about.what}` : '',
        listed(provides),
        listed([...requires, ...wants.map((token) => `${token}?`)]),
        listed([
          ...registrations.surfaces.filter(({ owner }) => owner === name).map(({ options }) => options.name),
          ...registrations.listeners.filter(({ owner }) => owner === name).map((one) => one.name),
        ]),
        of(registrations.actors, name, ({ type }) => type),
        about ? `[${about.docs}](${about.docs})` : '',
      ]),
    ),
  ];
}

const listed = (names: readonly string[]): string => names.map((name) => `\`${name}\``).join(', ');
const row = (cells: readonly string[]): string =>
  `|${cells.map((cell) => (cell === '' ? ' ' : ` ${cell.replaceAll('|', '\\|')} `)).join('|')}|`;
