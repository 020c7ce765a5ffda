#pragma once

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/json_schema/schema_nodes.h"

namespace minimind {

// Reads the keywords of a document's schemas into SchemaNodes, and resolves its references.
class SchemaReader {
 public:
  SchemaReader(SchemaNodes& nodes, const SchemaJson& document, const std::string& source,
               const std::map<std::string, SchemaJson>& references);

  void read();

 private:
  // A document, or a part of one with an $id of its own.
  struct Resource {
    std::string uri;
    const SchemaJson* root = nullptr;
    SchemaDraft draft = SchemaDraft::draft2020;
    bool draft_stated = false;
    std::map<std::string, const SchemaJson*> anchors;
    std::set<std::string> dynamic;  // anchors that $dynamicRef follows; "" if its $recursiveAnchor is true
  };

  // A place in a document, for messages.
  struct Place {
    const Resource* resource;
    std::string pointer;

    Place at(std::string_view key) const;
    Place at(std::size_t index) const { return at(std::to_string(index)); }
  };

  using Read = void (SchemaReader::*)(const SchemaJson& schema, const Place& place, SchemaNode& node);

  // A part of a document that may have an $id.
  struct Unsearched {
    const SchemaJson* value;
    std::size_t resource;
    int depth;
    bool named;  // its values are schemas by their names
  };

  void find_resources(const SchemaJson& document, std::size_t own);
  std::size_t start_resource(const SchemaJson& value, std::size_t outer);
  std::optional<SchemaDraft> stated_draft(const SchemaJson& root, const Resource& resource) const;

  NodeId node_of(const SchemaJson& schema, const Place& place);
  void fill(NodeId id, const SchemaJson& schema, const Place& place);
  NodeId resolve(const std::string& reference, const Place& place);
  NodeId resolve_dynamic(const std::string& reference, const Place& place);
  std::string uri_of(const std::string& reference, const Place& place) const;
  const Resource& resource_named(const std::string& reference, const Place& place) const;
  const SchemaJson* find(Place& place, const std::string& fragment) const;
  const SchemaJson* member(const SchemaJson& object, const std::string& key) const;

  void read_types(const SchemaJson& schema, const Place& place, SchemaNode& node);
  void read_constants(const SchemaJson& schema, const Place& place, SchemaNode& node);
  void read_numbers(const SchemaJson& schema, const Place& place, SchemaNode& node);
  void read_bound(const SchemaJson& schema, const Place& place, const char* inclusive, const char* exclusive,
                  std::vector<NumberBound>& bounds);
  void read_strings(const SchemaJson& schema, const Place& place, SchemaNode& node);
  void read_arrays(const SchemaJson& schema, const Place& place, SchemaNode& node);
  void read_contains(const SchemaJson& schema, const Place& place, SchemaNode& node);
  void read_objects(const SchemaJson& schema, const Place& place, SchemaNode& node);
  void read_dependencies(const SchemaJson& schema, const Place& place, SchemaNode& node);
  void read_logic(const SchemaJson& schema, const Place& place, SchemaNode& node);
  void note_ignored(const SchemaJson& schema, const Place& place);
  void ignore(std::string what);

  static const SchemaJson* value_of(const SchemaJson& schema, const Place& place, std::string_view name);
  std::optional<std::size_t> count(const SchemaJson& schema, const Place& place, const char* keyword);
  std::vector<std::string> names(const SchemaJson& value, const Place& place);
  std::vector<NodeId> schemas(const SchemaJson& value, const Place& place);
  std::optional<NodeId> schema_at(const SchemaJson& schema, const Place& place, std::string_view keyword);
  AutomatonId pattern(const std::string& pattern, const Place& place);
  NodeId constant(const SchemaJson& value, const Place& place);
  SchemaNode scalars(const std::vector<const SchemaJson*>& values, const Place& place);
  Decimal decimal(const SchemaJson& value, const Place& place) const;
  [[noreturn]] void fail(const Place& place, std::string_view reason) const;

  SchemaNodes& nodes_;
  std::string source_;
  std::vector<Resource> resources_;  // complete before anything is read
  std::map<std::string, std::size_t> by_uri_;
  std::unordered_map<const SchemaJson*, std::size_t> resource_roots_;
  std::unordered_map<const SchemaJson*, NodeId> known_;
  mutable std::unordered_map<const SchemaJson*, std::map<std::string_view, const SchemaJson*>> members_;
  bool names_draft4_ = false;  // the document that was searched refers to the metaschema of draft 4
  std::set<std::string> known_ignored_;
  struct Unread {
    NodeId id;
    const SchemaJson* schema;
    const Resource* resource;
  };
  std::vector<Unread> unread_;
};

// Returns the schemas of a document. `references` are further documents by their URI. Throws SchemaError for a schema
// that cannot be read or has a keyword that is not supported. The documents need not outlive the result.
std::unique_ptr<SchemaNodes> read_schemas(const SchemaJson& document, const std::string& source,
                                          const std::map<std::string, SchemaJson>& references);

// Returns a reference, resolved against a base, as RFC 3986 has it.
std::string resolve_uri(std::string_view base, std::string_view reference);

}  // namespace minimind
