import type { PagesAnswer } from '../../api/types.ts';
import { address, path } from '../location.ts';

type Page = PagesAnswer['pages'][number];

const to = ({ name }: Page): string => `/area/${name}`;
const isShown = (page: Page): boolean => path.value === to(page);

/** The pages of plugins by their area, each area once: it leads to its first page, which has links to the others. */
export function AreaLinks({ pages }: { pages: readonly Page[] }) {
  const areas = Map.groupBy(pages, ({ area }) => area);
  return (
    <>
      {Array.from(areas, ([area, own]) => {
        const [first] = own.filter(({ isListed }) => isListed);
        if (!first) return null;
        return (
          <a key={area} href={address(to(first))} aria-current={own.some(isShown) ? 'page' : undefined}>
            {own.length === 1 ? first.title : area}
          </a>
        );
      })}
    </>
  );
}

/** Links to the pages of one area, where it has several. */
export function PagesOfArea({ pages }: { pages: readonly Page[] }) {
  const [first, ...others] = pages.filter((page) => page.isListed || isShown(page));
  if (!first || others.length === 0) return null;
  return (
    <nav class="area-pages" aria-label={first.area}>
      {[first, ...others].map((page) => (
        <a key={page.name} href={address(to(page))} aria-current={isShown(page) ? 'page' : undefined}>
          {page.title}
        </a>
      ))}
    </nav>
  );
}
