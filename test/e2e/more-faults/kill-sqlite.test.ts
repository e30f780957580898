import { killSuite } from '../../support/service/kill-suite.ts';

killSuite('sqlite');
