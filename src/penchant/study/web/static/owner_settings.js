// All settings.

import { follow } from "./owner.js";
import "./forms.js";

follow(() => {});
