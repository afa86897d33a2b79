// The shapes of the control protocol (docs/boughfs-protocol.md) as JSON. Used by methods.cc.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "native/branchfs/store_types.h"

namespace bough {

using Json = nlohmann::json;

/// A request that makes no sense; answered as E_BAD_REQUEST.
struct BadRequest {
  std::string message;
};

/// A path: a string if it is UTF-8, else {"b64": …}.
Json pathToJson(const std::string& path);
std::string pathFromJson(const Json& json);  // throws BadRequest
std::vector<std::string> pathsFromJson(const Json& params, const char* key);

Json toJson(const BranchInfo& info);
Json toJson(const FileChange& change);
Json toJson(const DiffPage& page);
Json toJson(const FileStat& stat);
Json toJson(const std::vector<ListedName>& names);
Json toJson(const Conflict& conflict);
Json toJson(const CommitResult& result);
Json toJson(const CommitInfo& info);
Json toJson(const StoreStatus& status);
Json toJson(const StoreEvent& event);
/// `refusal`: what belongs to the error's code.
Json toJson(const Error& error, const Refusal& refusal);

}  // namespace bough
