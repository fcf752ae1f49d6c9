import { describeShared } from "../support/shared.js";

describeShared("PostgreSQL");
