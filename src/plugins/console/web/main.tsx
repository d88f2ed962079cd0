import { showPages } from './show.tsx';

showPages();
