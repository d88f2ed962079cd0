// `npm run docs`: writes the generated pages of docs/. A test fails while one of them is not what this would write.
import { writeFileSync } from 'node:fs';
import { errorsPage } from '../src/core/errors/page.ts';
import { errorTable } from '../src/core/errors/table.ts';

writeFileSync(new URL('../docs/errors.md', import.meta.url), errorsPage(errorTable));
console.log('docs/errors.md is fresh');
