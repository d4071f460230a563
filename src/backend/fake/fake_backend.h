// A device that plays a script: its variants compute plain attention on the host, its clock says what the
// script says.
#pragma once

#include <memory>

#include "backend/backend.h"
#include "core/fake_script.h"
#include "core/variant.h"

namespace fdbench {

// The variants of the fake device: fake_oracle, fake_roof, fake_reference, fake_candidate and fake_other
// (which has an axis, chunk). They play the script of the last fake backend made: there is one a process.
std::unique_ptr<Backend> make_fake_backend(FakeScript script);
VariantTable fake_variant_table();

}  // namespace fdbench
