// `npm run api`: accepts the public interface as it is now. A test fails while the committed report says something else.
import { writeFileSync } from 'node:fs';
import { readPublicInterface } from './api/declarations.ts';
import { REPORT, reportOf } from './api/report.ts';

writeFileSync(new URL(`../${REPORT}`, import.meta.url), reportOf(readPublicInterface()));
console.log(`written: ${REPORT}; say in CHANGELOG.md what users of the package have to change`);
