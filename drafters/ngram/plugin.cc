// The plugin's door.
#include "ngram.h"

AERIE_DRAFTER_PLUGIN(ngram::Lookup, ngram::Suffix)
